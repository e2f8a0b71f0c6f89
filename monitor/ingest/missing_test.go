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

func TestARestartForgetsNoLoss(t *testing.T) {
	t.Parallel()
	b, dir := inproc.New(inproc.Options{}), t.TempDir()
	first, stop := live(t, b, dir)
	publish(t, b, began("w1", "t1", 1), heartbeat("w1", 7, 1, 2), heartbeat("w1", 7, 3, 9), began("w1", "t4", 10), heartbeat("w1", 7, 4, 11))
	await(t, first, "the events", func() bool { return first.Health().Events == 5 })
	stop()
	second, stop := live(t, b, dir)
	defer stop()
	await(t, second, "the history", func() bool { return second.Health().Ready })
	if got := second.Health().MissingStarted; got != 2 {
		t.Errorf("missing events = %d after a restart, want 2", got)
	}
	publish(t, b, heartbeat("w1", 7, 9, 20), began("w1", "t10", 21), heartbeat("w1", 7, 10, 22)) // five more meanwhile
	await(t, second, "later events", func() bool { return second.Health().Events == 3 })
	if got := second.Health().MissingStarted; got != 7 {
		t.Errorf("missing events = %d, want 7", got)
	}
}
