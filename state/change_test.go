package state_test

import (
	"testing"

	"github.com/umbelhq/umbel/state"
)

// TestALateEventCountsForItsWorker has a retry reach Umbel after the next attempt has begun on another worker.
func TestALateEventCountsForItsWorker(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{})
	c.Apply(&state.Event{Kind: state.TaskReceived, ID: "x", Hostname: "celery@a", Clock: 1, Micros: 1e6, PID: 1})
	c.Apply(&state.Event{Kind: state.TaskReceived, ID: "x", Hostname: "celery@b", Clock: 5, Micros: 5e6, PID: 2})
	if got := c.Apply(&state.Event{Kind: state.TaskRetried, ID: "x", Hostname: "celery@a", Clock: 3, Micros: 3e6, PID: 1}); got.Worker != "celery@a" {
		t.Errorf("counts for worker %q, want celery@a", got.Worker)
	}
}
