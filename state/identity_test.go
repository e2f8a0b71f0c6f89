package state_test

import (
	"testing"

	"github.com/umbelhq/umbel/state"
)

// TestIdentity says which events are the same one again.
func TestIdentity(t *testing.T) {
	t.Parallel()
	received := ev(state.TaskReceived, "a", "w1", 10, 1)
	clockless := func(e state.Event) state.Event {
		e.Clock, e.Present = 0, e.Present&^state.FieldClock
		return e
	}
	retimed := func(e state.Event, second float64) state.Event {
		e.Retimed, e.Micros = true, at(second)
		return e
	}
	later := ev(state.TaskReceived, "a", "w1", 10, 90)
	later.Clock = received.Clock
	for name, tc := range map[string]struct {
		a, b state.Event
		want int // events kept
	}{
		"the same":                                 {received, received, 1},
		"another kind":                             {received, ev(state.TaskStarted, "a", "w1", 10, 1), 2},
		"another process":                          {received, ev(state.TaskReceived, "a", "w1", 11, 1), 2},
		"the same clock in another life":           {received, later, 2},
		"without clocks, at the same time":         {clockless(received), clockless(received), 1},
		"without clocks, at other times":           {clockless(received), clockless(later), 2},
		"without times, received twice":            {retimed(received, 5), retimed(received, 6), 1},
		"without times, other clocks":              {retimed(received, 5), retimed(ev(state.TaskReceived, "a", "w1", 10, 2), 5), 2},
		"without clocks and times":                 {retimed(clockless(received), 5), retimed(clockless(received), 6), 1},
		"without clocks and times, other attempts": {retimed(clockless(received), 5), retimed(clockless(retry(received, 1)), 6), 2},
		"one without clock, one without both":      {clockless(received), retimed(clockless(received), 6), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, order := range [][]state.Event{{tc.a, tc.b}, {tc.b, tc.a}} {
				c := apply(state.New(state.Options{}), order...)
				if got := len(c.TaskEvents("a")); got != tc.want {
					t.Errorf("%d events kept, want %d", got, tc.want)
				}
			}
		})
	}
}

// TestRedeliveredLooksPastWhatWasNotSeenToBegin has an attempt received on two workers, and run on a third.
func TestRedeliveredLooksPastWhatWasNotSeenToBegin(t *testing.T) {
	t.Parallel()
	c := apply(state.New(state.Options{}),
		ev(state.TaskReceived, "a", "w1", 10, 1), ev(state.TaskStarted, "a", "w2", 20, 2), ev(state.TaskReceived, "a", "w3", 30, 3))
	if got := mustTask(t, c, "a"); !got.Redelivered || len(got.Executions) != 3 {
		t.Errorf("redelivered %v in %d executions, want true in 3", got.Redelivered, len(got.Executions))
	}
}
