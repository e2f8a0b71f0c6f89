package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
)

const t0 = 1_790_000_000_000_000 // µs

// seconds after t0, in µs.
func at(seconds float64) int64 { return t0 + int64(seconds*1e6) }

// ev is an event of a task at a second, with the raw clock 10 × that second.
func ev(kind state.Kind, id, host string, pid int64, second float64) state.Event {
	e := state.Event{
		Kind: kind, ID: id, Hostname: host, PID: pid, Clock: int64(second * 10), Micros: at(second), ReceivedMicros: at(second),
		Present: state.FieldClock | state.FieldTimestamp,
	}
	if kind == state.TaskReceived || kind == state.TaskSent {
		e.Name, e.Args = "shop.pay", "(1,)"
		e.Present |= state.FieldName | state.FieldArgs | state.FieldRetries
	}
	return e
}

func retry(e state.Event, attempt int64) state.Event {
	e.Retries = attempt
	return e
}

func apply(c *state.Cluster, events ...state.Event) *state.Cluster {
	for i := range events {
		c.Apply(&events[i])
	}
	return c
}

func mustTask(t *testing.T, c *state.Cluster, id string) state.Task {
	t.Helper()
	task, ok := c.Task(id)
	if !ok {
		t.Fatalf("task %s is not held", id)
	}
	return task
}

func TestCausalRules(t *testing.T) {
	t.Parallel()
	sent := ev(state.TaskSent, "a", "gen1@web", 1, 1)
	received := ev(state.TaskReceived, "a", "w1", 10, 2)
	started := ev(state.TaskStarted, "a", "w1", 10, 3)
	failed := ev(state.TaskFailed, "a", "w1", 10, 5)
	succeeded := ev(state.TaskSucceeded, "a", "w1", 10, 6)
	retried := ev(state.TaskRetried, "a", "w1", 10, 4)
	revokedElsewhere := ev(state.TaskRevoked, "a", "w2", 20, 8)
	again := retry(ev(state.TaskReceived, "a", "w2", 20, 7), 1)
	progress := ev(state.TaskCustom, "a", "w1", 11, 3.5)
	progress.Subject = "progress"
	redelivered := ev(state.TaskReceived, "a", "w2", 20, 9)
	for name, tc := range map[string]struct {
		events     []state.Event
		state      state.State
		worker     string
		executions int
	}{
		"only sent is pending":                         {[]state.Event{sent}, state.Pending, "", 0},
		"sent after received":                          {[]state.Event{received, sent}, state.Received, "w1", 1},
		"a late start does not undo success":           {[]state.Event{received, succeeded, started}, state.Success, "w1", 1},
		"success outranks failure":                     {[]state.Event{received, failed, succeeded}, state.Success, "w1", 1},
		"a late failure changes nothing":               {[]state.Event{succeeded, failed, received}, state.Success, "w1", 1},
		"waiting for a retry":                          {[]state.Event{received, started, retried}, state.Retry, "w1", 1},
		"a sent retry still waits":                     {[]state.Event{received, retried, retry(sent, 1)}, state.Retry, "w1", 1},
		"a retry taken by another worker":              {[]state.Event{again, received, started, retried}, state.Received, "w2", 2},
		"a late retried of the old attempt":            {[]state.Event{received, started, again, retried}, state.Received, "w2", 2},
		"a retry received before it is reported":       {[]state.Event{received, started, retry(ev(state.TaskReceived, "a", "w1", 10, 4), 1), ev(state.TaskRetried, "a", "w1", 10, 4.5), ev(state.TaskStarted, "a", "w1", 10, 5)}, state.Started, "w1", 2},
		"redelivery runs again, visibly":               {[]state.Event{received, started, failed, redelivered}, state.Received, "w2", 2},
		"custom state over started":                    {[]state.Event{received, started, progress}, "PROGRESS", "w1", 1},
		"revoked over custom":                          {[]state.Event{received, started, progress, ev(state.TaskRevoked, "a", "w1", 10, 4)}, state.Revoked, "w1", 1},
		"rejected over started":                        {[]state.Event{received, started, ev(state.TaskRejected, "a", "w1", 10, 4)}, state.Rejected, "w1", 1},
		"revoked by a worker that never took it":       {[]state.Event{sent, revokedElsewhere}, state.Revoked, "w2", 1},
		"revoked while waiting for a retry":            {[]state.Event{received, started, retried, revokedElsewhere}, state.Revoked, "w2", 2},
		"revoked on the same worker after a retry":     {[]state.Event{received, started, retried, ev(state.TaskRevoked, "a", "w1", 10, 8)}, state.Revoked, "w1", 2},
		"progress before its task-received is seen":    {[]state.Event{progress, received, started}, "PROGRESS", "w1", 1},
		"an execution known only by its end":           {[]state.Event{succeeded}, state.Success, "w1", 1},
		"progress of a task that nothing else says of": {[]state.Event{progress}, "PROGRESS", "w1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := mustTask(t, apply(state.New(state.Options{}), tc.events...), "a")
			if got.State != tc.state || len(got.Executions) != tc.executions || deref(got.Worker) != tc.worker {
				t.Errorf("got %s on %q in %d executions, want %s on %q in %d",
					got.State, deref(got.Worker), len(got.Executions), tc.state, tc.worker, tc.executions)
			}
		})
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestFieldsOfAnOldAttemptStayThere(t *testing.T) {
	t.Parallel()
	failed := ev(state.TaskRetried, "a", "w1", 10, 3)
	failed.Exception, failed.Traceback, failed.Present = "ValueError()", "Traceback", failed.Present|state.FieldException|state.FieldTraceback
	c := apply(state.New(state.Options{}),
		ev(state.TaskReceived, "a", "w1", 10, 1), failed, retry(ev(state.TaskReceived, "a", "w2", 20, 4), 1))
	got := mustTask(t, c, "a")
	if got.Exception != nil || got.RetriedAt != 0 {
		t.Errorf("exception %q and retry time %d leaked into the new attempt", deref(got.Exception), got.RetriedAt)
	}
	if first := got.Executions[0]; deref(first.Exception) != "ValueError()" || first.RetriedAt != at(3) {
		t.Errorf("the old attempt lost its fields: %+v", first)
	}
	if *got.Retries != 1 {
		t.Errorf("retries = %d, want 1", *got.Retries)
	}
}

func TestChildrenFindTheirParentInAnyOrder(t *testing.T) {
	t.Parallel()
	child := func(id string, second float64) state.Event {
		e := ev(state.TaskReceived, id, "w1", 10, second)
		e.ParentID, e.RootID, e.Present = "p", "p", e.Present|state.FieldParentID|state.FieldRootID
		return e
	}
	c := apply(state.New(state.Options{}), child("c2", 3), ev(state.TaskReceived, "p", "w1", 10, 1), child("c1", 2))
	if diff := cmp.Diff([]string{"c1", "c2"}, mustTask(t, c, "p").Children); diff != "" {
		t.Errorf("children by stamp (-want +got):\n%s", diff)
	}
	page := c.Tasks(state.Query{Root: "p"})
	if len(page.Tasks) != 3 {
		t.Errorf("query by root finds %d tasks, want 3", len(page.Tasks))
	}
}
