package workflow

import (
	"cmp"
	"slices"
)

// Assemble makes a workflow of the tasks of a root, in any order. Of two with one id it takes the first. It keeps tasks. It
// takes whatever clients claim: where parents form a cycle, the link of its first task is cut.
func Assemble(root string, tasks []Task) Workflow {
	a := assembly{root: root, tasks: tasks}
	a.index()
	a.link()
	w := Workflow{Root: root, Tasks: a.order(), Size: len(a.tasks)}
	if a.cut > 0 {
		w.Notes = append(w.Notes, "The parents of "+plural(a.cut, "task form", "tasks form")+" a cycle, which no tree shows: the first of each cycle is drawn without its parent.")
	}
	if _, known := a.at[root]; !known && len(a.tasks) > 0 {
		w.Notes = append(w.Notes, "The root task is not retained, or its events were never received.")
	}
	return w
}

// assembly is a workflow that is being assembled.
type assembly struct {
	root  string
	tasks []Task // by time
	at    map[string]int
	cut   int // cycles
}

// index sorts the tasks by time, the root first, and drops those that there are twice.
func (a *assembly) index() {
	slices.SortStableFunc(a.tasks, func(x, y Task) int {
		if xRoot, yRoot := x.ID == a.root, y.ID == a.root; xRoot != yRoot {
			if xRoot {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(x.FirstAt(), y.FirstAt()), cmp.Compare(x.ID, y.ID))
	})
	a.at = make(map[string]int, len(a.tasks))
	n := 0
	for _, t := range a.tasks {
		if _, twice := a.at[t.ID]; !twice {
			a.at[t.ID], a.tasks[n] = n, t
			n++
		}
	}
	a.tasks = a.tasks[:n]
}

// link sets parents and children, and cuts cycles.
func (a *assembly) link() {
	for i := range a.tasks {
		t := &a.tasks[i]
		t.Parent, t.Children, t.Depth, t.Below = -1, nil, 0, 0
		if p, ok := a.at[t.ParentID]; ok && p != i && t.ID != a.root {
			t.Parent = p
		}
	}
	walked := make([]int, len(a.tasks)) // by which walk, 0 is none
	for i := range a.tasks {
		for at := i; at >= 0 && walked[at] == 0; at = a.tasks[at].Parent {
			walked[at] = i + 1
			if p := a.tasks[at].Parent; p >= 0 && walked[p] == i+1 {
				a.tasks[a.firstOf(p)].Parent = -1
				a.cut++
				break
			}
		}
	}
	for i := range a.tasks {
		if p := a.tasks[i].Parent; p >= 0 {
			a.tasks[p].Children = append(a.tasks[p].Children, i)
		}
	}
}

// firstOf is the first task by time of the cycle that i is in.
func (a *assembly) firstOf(i int) int {
	first := i
	for at := a.tasks[i].Parent; at != i; at = a.tasks[at].Parent {
		first = min(first, at)
	}
	return first
}

// order returns the tasks in tree order, with their indices in it.
func (a *assembly) order() []Task {
	place := make([]int, len(a.tasks))
	list := make([]Task, 0, len(a.tasks))
	var stack []int
	for i, t := range slices.Backward(a.tasks) {
		if t.Parent < 0 {
			stack = append(stack, i)
		}
	}
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		t := a.tasks[i]
		place[i] = len(list)
		if t.Parent >= 0 {
			t.Parent = place[t.Parent]
			t.Depth = list[t.Parent].Depth + 1
		}
		list = append(list, t)
		for _, child := range slices.Backward(t.Children) {
			stack = append(stack, child)
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		t := &list[i]
		for n, child := range t.Children {
			t.Children[n] = place[child]
		}
		if t.Parent >= 0 {
			list[t.Parent].Below += t.Below + 1
		}
	}
	return list
}
