package state_test

import (
	"testing"

	"github.com/umbelhq/umbel/state"
)

// published is a task-sent or task-received with the args that its publisher gave it, and an ETA if any.
func published(kind state.Kind, host string, second float64, attempt int64, args, eta string) state.Event {
	e := retry(ev(kind, "a", host, 10, second), attempt)
	e.Args, e.ETA = args, eta
	e.Present |= state.FieldETA
	if eta == "" {
		e.Null = state.FieldETA
	}
	return e
}

func TestWhatPublishersDecidedIsShownForTheNewestAttempt(t *testing.T) {
	t.Parallel()
	const sent, received = state.TaskSent, state.TaskReceived
	retried := ev(state.TaskRetried, "a", "w1", 10, 5)
	discarded := ev(state.TaskRevoked, "a", "w2", 20, 9)
	for name, tc := range map[string]struct {
		events    []state.Event
		args, eta string
	}{
		"task-received is right, not task-sent": {
			[]state.Event{published(sent, "web", 1, 0, "sent", "noon"), published(received, "w1", 2, 0, "received", "noon")}, "received", "noon",
		},
		"the newest attempt is right": {
			[]state.Event{published(received, "w1", 2, 0, "first", "noon"), retried, published(received, "w1", 6, 1, "second", "one")}, "second", "one",
		},
		"an execution that was not seen to begin is of its attempt": {
			[]state.Event{
				published(sent, "web", 1, 0, "sent", "noon"), published(received, "w1", 2, 0, "received", "noon"),
				ev(state.TaskStarted, "a", "w2", 20, 7),
			}, "received", "noon",
		},
		"the ETA of the first attempt is not the second's": {
			[]state.Event{published(sent, "web", 1, 0, "sent", "noon"), published(received, "w1", 2, 0, "received", "noon"), retried, published(received, "w1", 6, 1, "second", "")}, "second", "",
		},
		"an attempt that nobody told of repeats the args": {
			[]state.Event{published(received, "w1", 2, 0, "received", "noon"), retried, discarded}, "received", "",
		},
		"args as the last worker had them": {
			[]state.Event{published(sent, "web", 1, 0, "sent", "noon"), published(received, "w1", 2, 0, "received", "noon"), retried, discarded}, "received", "",
		},
		"a task-sent of the attempt is better than an older task-received": {
			[]state.Event{published(received, "w1", 2, 0, "received", "noon"), retried, published(sent, "web", 6, 1, "again", "one"), discarded}, "again", "one",
		},
		"only sent": {[]state.Event{published(sent, "web", 1, 0, "sent", "noon")}, "sent", "noon"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := mustTask(t, apply(state.New(state.Options{}), tc.events...), "a")
			if deref(got.Args) != tc.args || deref(got.ETA) != tc.eta {
				t.Errorf("args %q, ETA %q, want %q, %q", deref(got.Args), deref(got.ETA), tc.args, tc.eta)
			}
		})
	}
}
