package workflow_test

import (
	"fmt"
	"testing"

	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

const second = int64(1_000_000)

// ran is a task with one attempt, at seconds from the start.
func ran(id, parent, worker string, queued, started, ended int64) workflow.Task {
	return workflow.Task{
		ID: id, ParentID: parent, Name: id[:1], State: state.Success, SentAt: queued * second, Client: "gen",
		Executions: []workflow.Execution{{Worker: worker, State: state.Success, QueuedAt: queued * second, ReceivedAt: started * second, StartedAt: started * second, EndedAt: ended * second}},
	}
}

// chord is a task that sends three tasks, the body that waits for them, and a task that ends before.
func chord() workflow.Workflow {
	return workflow.Assemble("r", []workflow.Task{
		ran("r", "", "a", 10, 11, 13), ran("h1", "r", "a", 12, 13, 20), ran("h2", "r", "b", 12, 14, 61), ran("h3", "r", "b", 12, 14, 18),
		ran("body", "h2", "a", 61, 62, 70), ran("log", "r", "a", 12, 20, 30),
	})
}

// TestCriticalPath says which tasks decide the end, how each spent its time, and what a chord waited for.
func TestCriticalPath(t *testing.T) {
	t.Parallel()
	w := chord()
	var got []string
	for _, h := range w.Critical(workflow.Groups{}, nil) {
		got = append(got, fmt.Sprint(w.Tasks[h.Task].ID, " ", h.Wait.Low/second, " ", h.Run.Low/second, " ", h.Hold.Low/second, " ", h.Rival))
	}
	if want := "[r 1 1 0 -1 h2 2 47 41 -1 body 1 8 0 -1]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// within returns bounds by how far the clocks of nodes may be ahead, in seconds.
func within(ahead map[string][2]int64) workflow.ElapsedFunc {
	return func(from, to state.Moment) (state.Elapsed, bool) {
		a, b := ahead[from.Hostname], ahead[to.Hostname]
		raw := to.Micros - from.Micros
		e := state.Elapsed{Low: max(raw+(a[0]-b[1])*second, 0), High: raw + (a[1]-b[0])*second}
		return e, e.High >= e.Low
	}
}

// TestCriticalPathWithinBounds says that lengths between clocks have the bounds of their offsets, and that two tasks that may
// have ended last are both named.
func TestCriticalPathWithinBounds(t *testing.T) {
	t.Parallel()
	w := chord()
	h := w.Critical(workflow.Groups{}, within(map[string][2]int64{"b": {-1, 45}}))[1]
	if h.Wait.Elapsed != (state.Elapsed{High: 3 * second}) || h.Wait.Likely != 2*second || h.Run.Low != 47*second || !h.Run.Exact() {
		t.Errorf("waited %v, ran %v", h.Wait, h.Run)
	}
	if h.Hold.Elapsed != (state.Elapsed{High: 42 * second}) || h.Rival < 0 || w.Tasks[h.Rival].ID != "h1" || !h.Inferred {
		t.Errorf("held %v, rival %d, inferred %t", h.Hold, h.Rival, h.Inferred)
	}
}

// TestCriticalPathTakesHeadersFromGroups says that a header is what stored results tell, where they do.
func TestCriticalPathTakesHeadersFromGroups(t *testing.T) {
	t.Parallel()
	w := chord()
	groups := workflow.Groups{Of: map[string]string{"h2": "g", "h3": "g"}, Body: map[string]string{"body": "g"}}
	if h := w.Critical(groups, nil)[1]; h.Hold.Low != 43*second || h.Inferred {
		t.Errorf("held %v, inferred %t, want 43 s by the group", h.Hold, h.Inferred)
	}
}

// TestTimesAreCorrected says that a worker whose clock is behind neither begins before its tasks were sent nor decides the path,
// and that a wait that stays negative is at least nothing and uncertain.
func TestTimesAreCorrected(t *testing.T) {
	t.Parallel()
	task := func(id, parent, worker string, sent, started, ended int64) workflow.Task {
		return workflow.Of(&state.Task{
			ID: id, ParentID: &parent, Client: new("gen7@a"), SentAt: sent, State: state.Success,
			Executions: []state.Execution{{Worker: worker, State: state.Success, Times: state.Times{ReceivedAt: started, StartedAt: started, SucceededAt: ended}}},
		}, map[string]int64{"a": 0, "b": -4 * second})
	}
	w := workflow.Assemble("r", []workflow.Task{
		task("r", "", "celery@a", 10*second, 11*second, 13*second),
		task("late", "r", "celery@b", 12*second, 9*second, 12*second), task("soon", "r", "celery@a", 12*second, 13*second, 15*second),
		task("odd", "r", "celery@b", 12*second, 7*second, 8*second),
	})
	bounds := within(map[string][2]int64{"celery@b": {-5, -3}})
	path := w.Critical(workflow.Groups{}, bounds)
	if last := w.Tasks[path[1].Task]; last.ID != "late" || last.EndedAt() != 16*second || last.Executions[0].StartedAt != 13*second {
		t.Errorf("the path ends with %+v", last)
	}
	if wait := path[1].Wait; wait.Elapsed != (state.Elapsed{High: 2 * second}) || wait.Likely != second || wait.Uncertain {
		t.Errorf("waited %+v", wait)
	}
	for i := range w.Tasks {
		if w.Tasks[i].ID != "odd" {
			continue
		}
		if wait, ok := w.Waited(i, 0, w.Tasks[i].Executions[0].ReceivedAt, bounds); !ok || !wait.Uncertain || wait.Low != 0 || wait.High != 0 {
			t.Errorf("the wait that is negative: %+v, %t", wait, ok)
		}
	}
}

// TestRowsFoldSiblings says that alike siblings are one row until they are opened, but for the one with a tree below it.
func TestRowsFoldSiblings(t *testing.T) {
	t.Parallel()
	tasks := []workflow.Task{{ID: "r", Name: "root"}, {ID: "body", ParentID: "c7", Name: "body"}}
	for i := range 500 {
		c := workflow.Task{ID: "c" + fmt.Sprint(i), ParentID: "r", Name: "one", State: state.Success}
		if i < 3 {
			c.State = state.Failure
		}
		tasks = append(tasks, c)
	}
	w := workflow.Assemble("r", tasks)
	rows := w.Rows(nil)
	if len(rows) != 4 || len(rows[1].Folded) != 499 || rows[1].Failed != 3 {
		t.Errorf("rows %d: %v", len(rows), rows[1])
	}
	if got := len(w.Rows([]string{"r"})); got != 502 {
		t.Errorf("%d rows when opened, want 502", got)
	}
}
