package state_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
)

// TestRetriesReportedLate has what prefork workers send for tasks that retry at once: a free child takes the
// next attempt before the worker tells that the last one has started, or how it ended. A digit is the
// attempt that an event really belongs to, which only task-received says itself.
func TestRetriesReportedLate(t *testing.T) {
	t.Parallel()
	kinds := map[string]state.Kind{
		"received": state.TaskReceived, "started": state.TaskStarted, "retried": state.TaskRetried, "succeeded": state.TaskSucceeded,
	}
	for _, story := range []string{
		"received0 started0 retried0 received1 started1 retried1 received2 started2 succeeded2",
		"received0 started0 received1 retried0 started1 received2 retried1 started2 succeeded2",
		"received0 received1 started0 retried0 received2 started1 retried1 started2 succeeded2",
		"received0 received1 started0 received2 started1 retried0 retried1 started2 succeeded2",
		"received0 started0 received1 started1 retried0 received2 started2 retried1 succeeded2",
		"received0 started0 received1 started1 received2 retried0 retried1 started2 succeeded2",
		"received0 started0 received1 started1 received2 retried0 started2 retried1 succeeded2",
		"received0 started0 received1 started1 received2 retried0 started2 succeeded2 retried1",
	} {
		t.Run(story, func(t *testing.T) {
			t.Parallel()
			c := state.New(state.Options{})
			want := []string{"RETRY attempt 0", "RETRY attempt 1", "SUCCESS "}
			for i, step := range strings.Fields(story) {
				kind, attempt := step[:len(step)-1], int64(step[len(step)-1]-'0')
				e := ev(kinds[kind], "a", "w1", 10, float64(i+1))
				switch e.Kind {
				case state.TaskReceived:
					e = retry(e, attempt)
				case state.TaskRetried:
					e.Exception, e.Present = fmt.Sprint("attempt ", attempt), e.Present|state.FieldException
				default:
				}
				c.Apply(&e)
			}
			got := mustTask(t, c, "a")
			var executions []string
			for _, r := range got.Executions {
				exception := ""
				if r.Exception != nil {
					exception = *r.Exception
				}
				executions = append(executions, string(r.State)+" "+exception)
			}
			if diff := cmp.Diff(want, executions); diff != "" {
				t.Errorf("executions (-want +got):\n%s", diff)
			}
			if got.State != state.Success || got.Exception != nil {
				t.Errorf("task is %s with exception %v, want SUCCESS without", got.State, got.Exception)
			}
		})
	}
}

// TestDeliveriesTakenBack has attempts that a worker received and never started, since it lost its connection
// and the broker gave them to somebody again. Each step is worker, kind and attempt.
func TestDeliveriesTakenBack(t *testing.T) {
	t.Parallel()
	kinds := map[string]state.Kind{"received": state.TaskReceived, "started": state.TaskStarted, "retried": state.TaskRetried}
	for name, tc := range map[string]struct {
		story string
		want  []string
	}{
		"given to the same process": {
			"w1-received-0 w1-received-0 w1-started-0 w1-retried-0 w1-received-1 w1-started-1",
			[]string{"w1 RECEIVED", "w1 RETRY", "w1 STARTED"},
		},
		"given to another worker, which retries": {
			"w1-received-0 w2-received-0 w2-started-0 w2-retried-0 w1-received-1 w1-started-1 w1-retried-1",
			[]string{"w1 RECEIVED", "w2 RETRY", "w1 RETRY"},
		},
		"while it ran": {
			"w1-received-0 w1-started-0 w2-received-0 w2-started-0 w2-retried-0 w1-received-1 w1-retried-0 w1-started-1",
			[]string{"w1 RETRY", "w2 RETRY", "w1 STARTED"},
		},
		"and all else was missed up to the third attempt": {
			"w1-received-0 w1-received-2 w1-started-2 w1-retried-2 w1-received-3 w1-started-3",
			[]string{"w1 RECEIVED", "w1 RETRY", "w1 STARTED"},
		},
		"and its start was never seen": {
			"w1-received-0 w1-received-1 w1-retried-0 w1-started-1",
			[]string{"w1 RETRY", "w1 STARTED"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := state.New(state.Options{})
			for i, step := range strings.Fields(tc.story) {
				part := strings.Split(step, "-")
				e := retry(ev(kinds[part[1]], "a", part[0], 10, float64(i+1)), int64(part[2][0]-'0'))
				c.Apply(&e)
			}
			var got []string
			for _, x := range mustTask(t, c, "a").Executions {
				got = append(got, x.Worker+" "+string(x.State))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("executions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAClockThatStandsStill has a worker that always says 1: then its wall clock tells.
func TestAClockThatStandsStill(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{})
	for _, e := range tell("received started retried received1 started1 succeeded") {
		e.Clock, e.Micros = 1, t0+10*(e.Micros-t0)
		apply(c, e)
	}
	got := mustTask(t, c, "a")
	if len(got.Executions) != 2 || got.Executions[0].State != state.Retry || got.State != state.Success || got.StartedAt == 0 {
		t.Errorf("got %s in executions %+v, want a RETRY and a SUCCESS", got.State, got.Executions)
	}
}
