package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
)

func TestLastReportStaysWithItsWorker(t *testing.T) {
	t.Parallel()
	c := apply(state.New(state.Options{}), heartbeat(10, 1))
	report := state.LastReport{At: at(2), Pool: "prefork", Slots: new(int64(4)), Queues: []string{"celery", "mail"}}
	c.ReportWorker("w1", report)
	c.ReportWorker("stranger", report)
	c.ReportWorker("w1", state.LastReport{At: at(3), Queues: []string{"celery"}})
	want := &state.LastReport{At: at(3), Pool: "prefork", Slots: new(int64(4)), Queues: []string{"celery"}}

	restored := state.New(state.Options{})
	if err := c.SaveWorkers(nil, func(_ string, saved []byte) {
		if err := restored.LoadWorker(saved); err != nil {
			t.Fatal(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*state.Cluster{"reported": c, "restored": restored} {
		if len(c.Workers()) != 1 {
			t.Errorf("%s: %d workers, want 1", name, len(c.Workers()))
		}
		w, _ := c.Worker("w1")
		if diff := cmp.Diff(want, w.LastReport); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	before, _ := c.Worker("w1")
	c.Shift(1_000_000)
	if after, _ := c.Worker("w1"); after.LastReport.At != at(4) || before.LastReport.At != at(3) {
		t.Errorf("after the clock was set: %d µs, and %d in a copy from before, want %d and %d",
			after.LastReport.At, before.LastReport.At, at(4), at(3))
	}
}
