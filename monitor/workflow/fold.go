package workflow

import (
	"hash/maphash"
	"slices"

	"github.com/umbelhq/umbel/state"
)

// foldAbove is how many siblings of one shape are drawn one by one.
const foldAbove = 10

// Row is what a drawing shows in one line: a task, or several siblings of one shape.
type Row struct {
	Task   int   // index in Workflow.Tasks, of the first of them
	Folded []int // indices of the siblings, nil of a single task
	Tasks  int   // of them and of what is below them
	Failed int   // of Tasks
}

// Rows returns the tasks in tree order, with siblings folded that have the same name and the same tree below them, where there
// are more than ten. Those below a task whose id is in open are not folded.
func (w *Workflow) Rows(open []string) []Row {
	shapes := w.shapes()
	failed := w.failed()
	groups := map[[2]uint64][]int{} // by parent and shape
	for i := range w.Tasks {
		k := [2]uint64{uint64(w.Tasks[i].Parent + 1), shapes[i]}
		groups[k] = append(groups[k], i)
	}
	var rows []Row
	for i := 0; i < len(w.Tasks); i++ {
		t := &w.Tasks[i]
		g := groups[[2]uint64{uint64(t.Parent + 1), shapes[i]}]
		switch {
		case len(g) <= foldAbove || t.Parent >= 0 && slices.Contains(open, w.Tasks[t.Parent].ID) || t.Parent < 0 && slices.Contains(open, w.Root):
			rows = append(rows, Row{Task: i, Tasks: 1})
			continue
		case g[0] == i:
			r := Row{Task: i, Folded: g}
			for _, n := range g {
				r.Tasks += w.Tasks[n].Below + 1
				r.Failed += failed[n]
			}
			rows = append(rows, r)
		}
		i += t.Below
	}
	return rows
}

// Single returns a row for each task, in tree order.
func (w *Workflow) Single() []Row {
	rows := make([]Row, len(w.Tasks))
	for i := range rows {
		rows[i] = Row{Task: i, Tasks: 1}
	}
	return rows
}

// shapes returns equal numbers for tasks of one name with the same tree below them.
func (w *Workflow) shapes() []uint64 {
	seed := maphash.MakeSeed()
	shapes := make([]uint64, len(w.Tasks))
	for i := len(w.Tasks) - 1; i >= 0; i-- {
		t := &w.Tasks[i]
		below := uint64(0)
		for _, child := range t.Children {
			below += maphash.Comparable(seed, shapes[child]) // in any order
		}
		shapes[i] = maphash.Comparable(seed, struct {
			name  string
			below uint64
		}{t.Name, below})
	}
	return shapes
}

// failed counts what failed of each task and what is below it.
func (w *Workflow) failed() []int {
	failed := make([]int, len(w.Tasks))
	for i := len(w.Tasks) - 1; i >= 0; i-- {
		t := &w.Tasks[i]
		if t.Failed() {
			failed[i]++
		}
		if t.Parent >= 0 {
			failed[t.Parent] += failed[i]
		}
	}
	return failed
}

// Failed reports whether it ended other than by succeeding.
func (t *Task) Failed() bool { return t.State.Final() && t.State != state.Success }
