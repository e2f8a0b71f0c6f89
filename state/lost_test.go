package state_test

import (
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state"
)

// beat is a heartbeat of w1's process 10 that says how many tasks run.
func beat(second float64, active int64) state.Event {
	e := heartbeat(10, second)
	e.Active = active
	return e
}

// runs is a task that w1 received and started at a second.
func runs(id string, second float64) []state.Event {
	return []state.Event{ev(state.TaskReceived, id, "w1", 10, second), ev(state.TaskStarted, id, "w1", 10, second+0.5)}
}

// asked is what w1 answers between two seconds.
func asked(from, to float64, active ...string) state.Inspection {
	return state.Inspection{Worker: "w1", PID: 10, Clock: int64(from * 10), RequestedAt: at(from), RepliedAt: at(to), Active: active}
}

// reason is why a task is lost, empty if it is not.
func reason(t *testing.T, c *state.Cluster, id string) state.Reason {
	t.Helper()
	if k := mustTask(t, c, id).Lost; k != nil {
		return k.Reason
	}
	return ""
}

func TestHeartbeatsProveThatNothingRuns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		beats []state.Event
		want  state.Reason
	}{
		"three that count nothing": {[]state.Event{beat(4, 0), beat(6, 0), beat(8, 0)}, state.ReasonNotRunning},
		"two":                      {[]state.Event{beat(4, 0), beat(6, 0)}, ""},
		"not in a row":             {[]state.Event{beat(4, 0), beat(6, 1), beat(8, 0), beat(10, 0)}, ""},
		"and work since":           {[]state.Event{beat(4, 0), beat(6, 0), beat(8, 0), beat(10, 3)}, state.ReasonNotRunning},
		"before it started":        {[]state.Event{beat(0.2, 0), beat(0.4, 0), beat(0.6, 0)}, ""},
		"as those before it started": {[]state.Event{
			beat(0.2, 0), beat(0.4, 0), beat(0.6, 0), beat(4, 0), beat(6, 0), beat(8, 0),
		}, state.ReasonNotRunning},
		"of which one was before it started": {[]state.Event{beat(0.2, 0), beat(0.4, 0), beat(4, 0), beat(6, 0)}, ""},
		"that count others":                  {[]state.Event{beat(4, 1), beat(6, 1), beat(8, 1)}, ""},
		"the first was sent before it began": {[]state.Event{beat(1.4, 0), beat(4, 0), beat(6, 0)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := apply(apply(state.New(state.Options{}), runs("a", 1)...), tc.beats...)
			c.Reconcile(at(12))
			if got := reason(t, c, "a"); got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
		})
	}
}

func TestTwoInspectionsAndALaterEventProveThatATaskIsGone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		told func(c *state.Cluster)
		want state.Reason
	}{
		"both lack it": {func(c *state.Cluster) {
			c.ApplyInspection(asked(20, 21, "b"))
			c.ApplyInspection(asked(80, 81, "b"))
		}, state.ReasonNotRunning},
		"one alone": {func(c *state.Cluster) { c.ApplyInspection(asked(80, 81, "b")) }, ""},
		"the second has it": {func(c *state.Cluster) {
			c.ApplyInspection(asked(20, 21, "b"))
			c.ApplyInspection(asked(80, 81, "a", "b"))
		}, ""},
		"asked before the answer": {func(c *state.Cluster) { c.ApplyInspection(asked(20, 81, "b")); c.ApplyInspection(asked(80, 81, "b")) }, ""},
		"of another process": {func(c *state.Cluster) {
			for _, from := range []float64{20, 80} {
				i := asked(from, from+1, "b")
				i.PID = 11
				c.ApplyInspection(i)
			}
		}, ""},
		"an event came between": {func(c *state.Cluster) {
			c.ApplyInspection(asked(20, 21, "b"))
			apply(c, ev(state.TaskCustom, "a", "w1", 10, 50))
			c.ApplyInspection(asked(80, 81, "b"))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := apply(apply(state.New(state.Options{}), append(runs("a", 1), runs("b", 2)...)...), beat(5, 1))
			tc.told(c)
			c.Reconcile(at(82))
			if got := reason(t, c, "a"); got != "" {
				t.Errorf("lost (%s) while events may be on their way", got)
			}
			apply(c, beat(82, 1))
			c.Reconcile(at(83))
			if got := reason(t, c, "a"); got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
			if got := reason(t, c, "b"); got != "" {
				t.Errorf("b, which was listed, is lost: %s", got)
			}
		})
	}
}

func TestWorkersThatRunLessThanEventsReportAreInspected(t *testing.T) {
	t.Parallel()
	c := apply(apply(state.New(state.Options{}), append(runs("a", 1), runs("b", 2)...)...), beat(20, 2))
	if v := c.Reconcile(at(21)); len(v.Inspect) != 0 {
		t.Errorf("asks %v although all are accounted for", v.Inspect)
	}
	apply(c, beat(22, 1))
	if v := c.Reconcile(at(23)); len(v.Inspect) != 1 || v.Inspect[0] != "w1" {
		t.Errorf("asks %v, want w1", v.Inspect)
	}
}

func expiring(second float64) state.Event {
	e := ev(state.TaskSent, "x", "web", 1, second)
	e.Expires, e.Present = "2026-09-21T14:13:30+00:00", e.Present|state.FieldExpires // second 10
	return e
}

func TestTasksThatExpireUnseen(t *testing.T) {
	t.Parallel()
	idle, busy := func(second float64) state.Event { return beat(second, 0) }, func(second float64) state.Event { return beat(second, 1) }
	for name, tc := range map[string]struct {
		events []state.Event
		asked  []state.Inspection
		want   state.Reason
		ask    bool
	}{
		"no worker":                       {nil, nil, state.ReasonExpired, false},
		"a worker that runs nothing":      {[]state.Event{idle(60)}, nil, state.ReasonExpired, false},
		"one that did before it was due":  {[]state.Event{idle(20), busy(60)}, nil, "", true},
		"one that runs something":         {[]state.Event{busy(60)}, nil, "", true},
		"and lists other tasks":           {[]state.Event{busy(60)}, []state.Inspection{asked(50, 51, "y")}, state.ReasonExpired, false},
		"and lists it":                    {[]state.Event{busy(60)}, []state.Inspection{asked(50, 51, "x")}, "", true},
		"received after all":              {[]state.Event{ev(state.TaskReceived, "x", "w1", 10, 60)}, nil, "", false},
		"silent since before it was sent": {[]state.Event{busy(1)}, nil, state.ReasonExpired, false},
		"silent since it was sent":        {[]state.Event{busy(6)}, nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := apply(apply(state.New(state.Options{}), expiring(5)), tc.events...)
			for _, i := range tc.asked {
				c.ApplyInspection(i)
			}
			if c.Reconcile(at(39)); reason(t, c, "x") != "" {
				t.Error("lost within the grace")
			}
			v := c.Reconcile(at(61))
			if got := reason(t, c, "x"); got != tc.want {
				t.Errorf("reason %q, want %q", got, tc.want)
			}
			if (len(v.Inspect) > 0) != tc.ask {
				t.Errorf("asks %v, want to ask %t", v.Inspect, tc.ask)
			}
		})
	}
}

func TestLostTasksDoNotRun(t *testing.T) {
	t.Parallel()
	c := apply(apply(state.New(state.Options{}), append(runs("a", 1), runs("b", 2)...)...), beat(5, 2))
	if n := c.Counts(); n.Running != 2 || n.Lost != 0 {
		t.Errorf("running %d, lost %d, want 2 and 0", n.Running, n.Lost)
	}
	c.Conclude("a", state.Conclusion{Reason: state.ReasonBackend, Evidence: "the backend says SUCCESS", At: at(6)})
	c.Conclude("b", state.Conclusion{Reason: state.ReasonDismissed, Evidence: "ann", At: at(6)})
	w, _ := c.Worker("w1")
	if n := c.Counts(); n.Running != 0 || n.Lost != 1 || n.Dismissed != 1 || w.RunningTasks != 0 {
		t.Errorf("running %d, lost %d, dismissed %d, on w1 %d, want 0, 1, 1, 0", n.Running, n.Lost, n.Dismissed, w.RunningTasks)
	}
	if c.Conclude("b", state.Conclusion{Reason: state.ReasonNotRunning}) {
		t.Error("a conclusion replaced what a person said")
	}
	if b := mustTask(t, c, "b"); b.Lost != nil || b.Dismissed == nil || b.Dismissed.Evidence != "ann" {
		t.Errorf("lost %v, dismissed %v, want the person alone", b.Lost, b.Dismissed)
	}
	apply(c, ev(state.TaskCustom, "a", "w1", 10, 7))
	if !c.Reopen("b") || c.Counts().Running != 2 {
		t.Errorf("running %d after an event and an undo, want 2", c.Counts().Running)
	}
}

func TestConclusionsAreSavedWithTheirTask(t *testing.T) {
	t.Parallel()
	want := state.Conclusion{Reason: state.ReasonNotRunning, Evidence: strings.Repeat("é", 200), At: at(6)}
	c := apply(state.New(state.Options{Track: true}), runs("a", 1)...)
	c.Conclude("a", want)
	want.Evidence = strings.Repeat("é", 150)
	saved := c.TakeUnsaved(1)[0].Events

	load := func(c *state.Cluster) state.Task {
		if err := c.Load("a", saved); err != nil {
			t.Fatal(err)
		}
		return mustTask(t, c, "a")
	}
	if got := load(state.New(state.Options{})); got.Lost == nil || *got.Lost != want {
		t.Errorf("loaded %+v, want %+v", got.Lost, want)
	}
	if got := load(apply(state.New(state.Options{}), runs("a", 1)[0])); got.Lost == nil {
		t.Error("not lost where fewer events were known")
	}
	if got := load(apply(state.New(state.Options{}), ev(state.TaskCustom, "a", "w1", 10, 9))); got.Lost != nil {
		t.Errorf("lost although it was not concluded from all events: %+v", got.Lost)
	}
	held := apply(state.New(state.Options{}), append(runs("a", 1), ev(state.TaskCustom, "a", "w1", 10, 9))...)
	held.Conclude("a", state.Conclusion{Reason: state.ReasonBackend})
	if got := load(held); got.Lost == nil || got.Lost.Reason != state.ReasonBackend {
		t.Errorf("a newer conclusion gave way to a saved one: %+v", got.Lost)
	}
	if task, _, err := state.DecodeTask("a", saved); err != nil || task.Lost == nil {
		t.Errorf("unfolded %+v, %v, want it lost", task.Lost, err)
	}
	for n := range saved {
		_ = state.New(state.Options{}).Load("a", saved[:n]) // must not panic
	}
}

func TestOrphansAreConcludedAndCleared(t *testing.T) {
	t.Parallel()
	goodbye := ev(state.WorkerOffline, "", "w1", 10, 5)
	c := apply(state.New(state.Options{}), append(runs("a", 1), beat(2, 1), goodbye)...)
	for second := 6.0; second < 5000; second += 500 {
		c.Reconcile(at(second))
	}
	got := mustTask(t, c, "a")
	if got.Lost == nil || got.Lost.Reason != state.ReasonOrphaned || !got.Orphaned || c.Counts().Orphaned != 1 || c.Counts().Lost != 1 {
		t.Fatalf("lost %+v, orphaned %t, counted %+v", got.Lost, got.Orphaned, c.Counts())
	}
	apply(c, beat(5001, 1)) // it had not gone
	c.Reconcile(at(5002))
	if got := mustTask(t, c, "a"); got.Lost != nil || got.Orphaned || c.Counts().Orphaned != 0 {
		t.Errorf("still lost: %+v", got.Lost)
	}
}
