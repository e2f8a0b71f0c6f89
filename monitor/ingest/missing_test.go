package ingest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/state/loss"
)

func TestMissingEventsAreFoundAndTakenBack(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	m := start(t, b)
	events := func(n uint64) func() bool { return func() bool { return m.Health().Events == n } }
	publish(t, b, began("w1", "t1", 1), heartbeat("w1", 7, 1, 2), heartbeat("w1", 7, 3, 9), began("w1", "t4", 10), heartbeat("w1", 7, 4, 11))
	await(t, m, "the events", events(5))
	want := ingest.Health{MissingStarted: 2, Gaps: []loss.Gap{{
		Worker: "w1", PID: 7, Missing: 2, After: 2, Before: 9, AfterMicros: 1790000002e6, BeforeMicros: 1790000009e6,
	}}}
	got := m.Health()
	if diff := cmp.Diff(want, ingest.Health{MissingStarted: got.MissingStarted, Gaps: got.Gaps}); diff != "" {
		t.Errorf("missing events (-want +got):\n%s", diff)
	}
	publish(t, b, began("w1", "t2", 4), began("w1", "t3", 6))
	await(t, m, "the late events", events(7))
	if got := m.Health().MissingStarted; got != 0 {
		t.Errorf("missing events = %d after they came, want 0", got)
	}
}
