package state_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
)

// counted is how many events of a story count, by kind.
func counted(c *state.Cluster, events []state.Event) map[state.Kind]int {
	n := make(map[state.Kind]int)
	for i := range events {
		if ch := c.Apply(&events[i]); ch.New && ch.First {
			n[events[i].Kind]++
		}
	}
	return n
}

func TestRepeatedEventsCountOnce(t *testing.T) {
	t.Parallel()
	for story, want := range map[string]map[state.Kind]int{
		"received started failed failed":                         {state.TaskFailed: 1}, // a hard time limit with Celery 5.7
		"received started revoked hollow":                        {state.TaskSucceeded: 0},
		"received started hollow revoked":                        {state.TaskSucceeded: 0},
		"received started retried received1 started1 retried1":   {state.TaskStarted: 2, state.TaskRetried: 2},
		"received started failed received started failed":        {state.TaskStarted: 2, state.TaskFailed: 2}, // delivered again
		"received started succeeded w2:received w2:failed":       {state.TaskSucceeded: 1, state.TaskFailed: 1},
		"received started succeeded failed":                      {state.TaskSucceeded: 1, state.TaskFailed: 1},
		"received received1 started started1 retried succeeded1": {state.TaskStarted: 2, state.TaskRetried: 1, state.TaskSucceeded: 1},
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			events := tell(story)
			got := counted(state.New(state.Options{}), append(events, events...))
			for kind, n := range want {
				if kind != state.TaskReceived && got[kind] != n {
					t.Errorf("%d events of kind %d count, want %d", got[kind], kind, n)
				}
			}
		})
	}
}

// TestReplayedEventsCountAsTheyDid replays a journal over a cluster that knows all of it.
func TestReplayedEventsCountAsTheyDid(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{})
	var journal []byte
	for _, e := range tell("received started failed failed retried received1 started1 succeeded1") {
		journal = state.AppendEvent(journal, &e, c.Apply(&e).Clock)
	}
	n := make(map[state.Kind]int)
	if err := c.Replay(journal, nil, func(e *state.Event, ch state.Change) {
		if ch.New {
			t.Errorf("event of kind %d is new", e.Kind)
		}
		if ch.First {
			n[e.Kind]++
		}
	}); err != nil {
		t.Fatal(err)
	}
	want := map[state.Kind]int{state.TaskReceived: 2, state.TaskStarted: 2, state.TaskFailed: 1, state.TaskRetried: 1, state.TaskSucceeded: 1}
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

func TestATerminatedTaskOfGeventIsRevoked(t *testing.T) {
	t.Parallel()
	events := tell("received started revoked hollow")
	events[2].Terminated, events[2].Signum = true, 15
	events[2].Present |= state.FieldTerminated | state.FieldSignum
	got := mustTask(t, apply(state.New(state.Options{}), events...), "a")
	if got.State != state.Revoked || got.SucceededAt != 0 || got.RevokedAt == 0 {
		t.Errorf("%s, succeeded at %d, revoked at %d, want REVOKED, never and some time", got.State, got.SucceededAt, got.RevokedAt)
	}
	if diff := cmp.Diff(&state.Revocation{Terminated: true, Signum: 15}, got.Revocation); diff != "" {
		t.Errorf("revocation (-want +got):\n%s", diff)
	}
}

func TestTheReasonOfARevocationIsKept(t *testing.T) {
	t.Parallel()
	for reason, event := range map[string]state.Event{
		"expired":    {Expired: true, Present: state.FieldExpired | state.FieldTerminated | state.FieldSignum, Null: state.FieldSignum},
		"terminated": {Terminated: true, Signum: 9, Present: state.FieldExpired | state.FieldTerminated | state.FieldSignum, Null: state.FieldExpired},
		"revoked":    {Present: state.FieldExpired | state.FieldTerminated | state.FieldSignum, Null: state.FieldSignum},
		"unknown":    {},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			if reason == "unknown" {
				reason = "revoked"
			}
			events := tell("received revoked")
			e := &events[1]
			e.Expired, e.Terminated, e.Signum, e.Null = event.Expired, event.Terminated, event.Signum, event.Null
			e.Present |= event.Present
			c := state.New(state.Options{Track: true})
			apply(c, events...)
			want := mustTask(t, c, "a")
			if got := want.Revocation; got == nil || got.Reason() != reason || got.Signum != event.Signum {
				t.Errorf("revocation is %+v, want %s", got, reason)
			}
			saved, _, err := state.DecodeTask("a", c.TakeUnsaved(1)[0].Events)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Revocation, saved.Revocation); diff != "" {
				t.Errorf("once saved (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheWrapperOfAnExceptionIsTakenOff(t *testing.T) {
	t.Parallel()
	const head = "Traceback (most recent call last):\n  File \"pool.py\", line 1, in f\n    raise\n"
	for name, tc := range map[string]struct{ exception, traceback, want string }{
		"killed child": {
			"ExceptionWithTraceback()", head + "billiard.exceptions.WorkerLostError: Worker exited prematurely: exitcode 1 Job: 4.\n",
			"WorkerLostError('Worker exited prematurely: exitcode 1 Job: 4.')",
		},
		"hard time limit": {
			"ExceptionWithTraceback()", head + "billiard.exceptions.TimeLimitExceeded: TimeLimitExceeded(1,)\n", "TimeLimitExceeded(1,)",
		},
		"no message":       {"ExceptionWithTraceback()", head + "KeyboardInterrupt", "KeyboardInterrupt()"},
		"quotes":           {"ExceptionWithTraceback()", head + "app.Odd: it's \\", `Odd("it's \\")`},
		"both quotes":      {"ExceptionWithTraceback()", head + `app.Odd: it's "so"`, `Odd('it\'s "so"')`},
		"no such line":     {"ExceptionWithTraceback()", "Traceback\n  File \"a.py\"\n", "ExceptionWithTraceback()"},
		"empty traceback":  {"ExceptionWithTraceback()", "", "ExceptionWithTraceback()"},
		"another one":      {"ValueError('no')", head + "KeyError: 'yes'\n", "ValueError('no')"},
		"with an argument": {"ExceptionWithTraceback(1)", head + "KeyError: 'yes'\n", `KeyError("'yes'")`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := tell("received started failed")
			e := &events[2]
			e.Exception, e.Traceback, e.Present = tc.exception, tc.traceback, e.Present|state.FieldTraceback
			got := mustTask(t, apply(state.New(state.Options{}), events...), "a")
			if *got.Exception != tc.want || *got.Executions[0].Exception != tc.want {
				t.Errorf("exception %s, of its execution %s, want %s", *got.Exception, *got.Executions[0].Exception, tc.want)
			}
		})
	}
}

func TestAReplayedEventIsStillTruncated(t *testing.T) {
	t.Parallel()
	events := tell("received started failed")
	events[2].Traceback, events[2].Present = strings.Repeat("x", 100_000), events[2].Present|state.FieldTraceback
	var journal []byte
	c := state.New(state.Options{})
	for i := range events {
		journal = state.AppendEvent(journal, &events[i], c.Apply(&events[i]).Clock)
	}
	again := state.New(state.Options{})
	if err := again.Replay(journal, nil, func(*state.Event, state.Change) {}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mustTask(t, c, "a"), mustTask(t, again, "a")); diff != "" || !mustTask(t, again, "a").Truncated {
		t.Errorf("truncated %v; replayed (-want +got):\n%s", mustTask(t, again, "a").Truncated, diff)
	}
}
