package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/workflow"
)

// TestAssembleKeepsEveryTask says that whatever parents clients claim, each task is drawn once, below its parent where it has
// one in the tree, and that order of arrival does not matter.
func TestAssembleKeepsEveryTask(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "n")
		tasks := make([]workflow.Task, n)
		for i := range tasks {
			tasks[i] = workflow.Task{
				ID: fmt.Sprint(i), ParentID: fmt.Sprint(rapid.IntRange(-1, n).Draw(t, "parent")),
				SentAt: rapid.Int64Range(0, 5).Draw(t, "sent"),
			}
		}
		shuffled := rapid.Permutation(tasks).Draw(t, "order")
		w := workflow.Assemble("0", tasks)
		if got := workflow.Assemble("0", shuffled); fmt.Sprint(got) != fmt.Sprint(w) {
			t.Fatalf("order of arrival matters:\n%v\n%v", got, w)
		}
		seen := map[string]bool{}
		for i, task := range w.Tasks {
			if seen[task.ID] {
				t.Fatalf("task %s is drawn twice", task.ID)
			}
			seen[task.ID] = true
			if p := task.Parent; p >= 0 {
				if w.Tasks[p].ID != task.ParentID || p >= i || i > p+w.Tasks[p].Below || task.Depth != w.Tasks[p].Depth+1 {
					t.Fatalf("task %d is not below its parent %d: %v", i, p, w)
				}
			}
		}
		if len(seen) != n {
			t.Fatalf("%d tasks of %d are drawn", len(seen), n)
		}
	})
}

// TestAssembleCutsCycles says which task of a cycle is drawn on top, and that the page says so.
func TestAssembleCutsCycles(t *testing.T) {
	t.Parallel()
	w := workflow.Assemble("r", []workflow.Task{
		{ID: "b", ParentID: "a", SentAt: 2}, {ID: "a", ParentID: "c", SentAt: 1}, {ID: "c", ParentID: "b", SentAt: 3},
	})
	var got []string
	for _, task := range w.Tasks {
		got = append(got, strings.Repeat(" ", task.Depth)+task.ID)
	}
	if want := "[a  b   c]"; fmt.Sprint(got) != want || len(w.Notes) != 2 {
		t.Errorf("got %v, want %s; notes %q", got, want, w.Notes)
	}
}
