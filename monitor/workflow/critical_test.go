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
	for _, h := range w.Critical(nil) {
		got = append(got, fmt.Sprint(w.Tasks[h.Task].ID, " ", h.Wait.Low/second, " ", h.Run.Low/second, " ", h.Hold.Low/second, " ", h.Rival))
	}
	if want := "[r 1 1 0 -1 h2 2 47 41 -1 body 1 8 0 -1]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestCriticalPathWithinBounds says that lengths between clocks have the bounds of their offsets, and that two tasks that may
// have ended last are both named.
func TestCriticalPathWithinBounds(t *testing.T) {
	t.Parallel()
	w := chord()
	offset := func(node string, _ int64) (workflow.Bounds, bool) {
		return map[string]workflow.Bounds{"a": {}, "b": {Low: -1 * second, High: 45 * second}, "gen": {}}[node], true
	}
	h := w.Critical(offset)[1]
	if h.Wait != (workflow.Bounds{Low: -43 * second, High: 3 * second}) || h.Run != (workflow.Bounds{Low: 47 * second, High: 47 * second}) {
		t.Errorf("waited %v, ran %v", h.Wait, h.Run)
	}
	if h.Hold != (workflow.Bounds{Low: -4 * second, High: 42 * second}) || h.Rival < 0 || w.Tasks[h.Rival].ID != "h1" {
		t.Errorf("held %v, rival %d", h.Hold, h.Rival)
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
