package workflow

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel/state"
)

// Bounds of a graph.
const (
	MaxNodes  = 200 // nodes of a graph
	maxAlike  = 6   // tasks with one name and parent that are drawn one by one
	maxOpened = 40  // tasks of an opened node that are
)

// Graph is a workflow as nodes and edges. Tasks with one name that the same tasks sent are one node where there are many.
type Graph struct {
	Nodes   []Node
	Edges   []Edge
	Omitted int    // tasks of nodes beyond MaxNodes
	Opened  []Node // nodes whose tasks are drawn one by one
}

// Node is a task, tasks folded into one, or a task that others name as their parent and nothing else is known of.
type Node struct {
	Key    string // names it as long as its workflow grows: the id of its task, or a digest
	Name   string // of its tasks, empty if unknown
	Tasks  []int  // indices in Workflow.Tasks, by time; none of a task that is only referred to
	Group  string // id of the Celery group that its tasks are in, empty if none is known
	States []StateCount
	Rest   bool  // they are those of an opened node that are not drawn one by one
	Ran    int64 // longest run of an attempt that ended, µs by its worker's clock, 0 if unknown
}

// StateCount is how many tasks of a node are in a state.
type StateCount struct {
	State state.State
	Count int
}

// Edge leads from a node to one whose tasks came after those.
type Edge struct {
	From, To int
	Waits    bool // the second is the body of a chord whose header the first belongs to; otherwise the first sent the second
}

// Groups says which Celery groups tasks are in, by their ids. No event tells.
type Groups struct {
	Of   map[string]string // group of each task that is known to be a member
	Body map[string]string // group of the header that each task is the body of
}

// Graph returns the graph of an assembled workflow. Nodes named in opened are drawn one by one.
func (w *Workflow) Graph(groups Groups, opened []string) Graph {
	f := &folding{w: w, groups: groups, opened: opened, alike: maxAlike}
	g := f.run()
	if g.Omitted > 0 { // fold everything that can be
		f = &folding{w: w, groups: groups, opened: opened, alike: 1}
		g = f.run()
	}
	return g
}

// folding is a graph in the making.
type folding struct {
	w      *Workflow
	groups Groups
	opened []string
	alike  int // tasks that are not folded
	graph  Graph
	nodeOf []int // of each task, -1 if none yet
}

// siblings are tasks of one name and group that the tasks of a node sent.
type siblings struct {
	name, group string
	tasks       []int
}

func (f *folding) run() Graph {
	f.nodeOf = make([]int, len(f.w.Tasks))
	for i := range f.nodeOf {
		f.nodeOf[i] = -1
	}
	f.roots()
	for next := 0; next < len(f.graph.Nodes); next++ { // breadth first, so that the beginning is drawn of what is too long
		var children []int
		for _, t := range f.graph.Nodes[next].Tasks {
			children = append(children, f.w.Tasks[t].Children...)
		}
		f.add(next, f.graph.Nodes[next].Key, children)
	}
	for _, n := range f.nodeOf {
		if n < 0 {
			f.graph.Omitted++
		}
	}
	f.chords()
	return f.graph
}

// roots adds the tasks without a parent in the workflow, behind the parents that they name.
func (f *folding) roots() {
	known := make(map[string]bool, len(f.w.Tasks))
	for i := range f.w.Tasks {
		known[f.w.Tasks[i].ID] = true
	}
	var first []int
	missing := make(map[string][]int)
	var ids []string
	for i := range f.w.Tasks {
		switch t := &f.w.Tasks[i]; {
		case t.Parent >= 0:
		case t.ParentID == "" || t.ID == f.w.Root || known[t.ParentID]: // the last where a cycle of parents was cut
			first = append(first, i)
		default:
			if missing[t.ParentID] == nil {
				ids = append(ids, t.ParentID)
			}
			missing[t.ParentID] = append(missing[t.ParentID], i)
		}
	}
	f.add(-1, "", first)
	for n, id := range ids {
		if n >= maxAlike { // no more are named
			f.add(-1, id, missing[id])
			continue
		}
		f.graph.Nodes = append(f.graph.Nodes, Node{Key: id})
		f.add(len(f.graph.Nodes)-1, id, missing[id])
	}
}

// add adds nodes for the tasks that those of a node sent, -1 for none. key is that of the node.
func (f *folding) add(from int, key string, children []int) {
	single := from < 0 || len(f.graph.Nodes[from].Tasks) <= 1
	for _, s := range f.classes(children, single) {
		digest := s.key(key)
		switch {
		case slices.Contains(f.opened, digest):
			f.graph.Opened = append(f.graph.Opened, f.node(digest, s))
			some, rest := f.chosen(s.tasks)
			for _, t := range some {
				f.append(from, f.node(f.w.Tasks[t].ID, siblings{s.name, s.group, []int{t}}))
			}
			if len(rest) > 0 {
				n := f.node(digest, siblings{s.name, s.group, rest})
				n.Rest = true
				f.append(from, n)
			}
		case len(s.tasks) == 1 || single && len(s.tasks) <= f.alike:
			for _, t := range s.tasks {
				f.append(from, f.node(f.w.Tasks[t].ID, siblings{s.name, s.group, []int{t}}))
			}
		default:
			f.append(from, f.node(digest, s))
		}
	}
}

// classes sorts tasks by name and group, in the order in which the first of each was sent. Where many tasks sent them, each
// may have a group of its own: what counts is whether there is one.
func (f *folding) classes(children []int, single bool) []siblings {
	var list []siblings
	type class struct{ name, group string }
	at := make(map[class]int)
	for _, t := range children {
		task := &f.w.Tasks[t]
		c := class{task.Name, f.groups.Of[task.ID]}
		if c.group != "" && !single {
			c.group = "several"
		}
		i, ok := at[c]
		if !ok {
			i = len(list)
			at[c] = i
			list = append(list, siblings{name: c.name, group: c.group})
		}
		list[i].tasks = append(list[i].tasks, t)
	}
	return list
}

func (s siblings) key(parent string) string {
	h := fnv.New64a()
	for _, part := range []string{parent, s.name, s.group} {
		_, _ = h.Write([]byte(part + "\x00")) // which it takes
	}
	return strconv.FormatUint(h.Sum64(), 16)
}

// chosen splits the tasks of an opened node into those that are drawn one by one, failed ones first, and the rest.
func (f *folding) chosen(tasks []int) (some, rest []int) {
	if len(tasks) <= maxOpened {
		return tasks, nil
	}
	rank := func(t int) int {
		switch task := &f.w.Tasks[t]; {
		case task.State.Final() && task.State != state.Success:
			return 0
		case !task.State.Final():
			return 1
		default:
			return 2
		}
	}
	byRank := slices.Clone(tasks)
	slices.SortStableFunc(byRank, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	some, rest = byRank[:maxOpened], byRank[maxOpened:]
	slices.Sort(some)
	slices.Sort(rest)
	return some, rest
}

// node returns a node of some tasks.
func (f *folding) node(key string, s siblings) Node {
	n := Node{Key: key, Name: s.name, Tasks: s.tasks}
	if s.group != "several" {
		n.Group = s.group
	}
	counts := make(map[state.State]int)
	for _, i := range s.tasks {
		t := &f.w.Tasks[i]
		counts[t.State]++
		for _, e := range t.Executions {
			if e.StartedAt != 0 && e.EndedAt > e.StartedAt {
				n.Ran = max(n.Ran, e.EndedAt-e.StartedAt)
			}
		}
	}
	for st, count := range counts {
		n.States = append(n.States, StateCount{st, count})
	}
	slices.SortFunc(n.States, func(a, b StateCount) int {
		return cmp.Or(cmp.Compare(severity(a.State), severity(b.State)), cmp.Compare(a.State, b.State))
	})
	return n
}

// severity orders states by how much they ask for a look: 0 is what failed.
func severity(st state.State) int {
	order := []state.State{state.Failure, state.Rejected, state.Revoked, state.Retry, state.Started, state.Received, state.Pending}
	if i := slices.Index(order, st); i >= 0 {
		return i
	}
	if st == state.Success {
		return len(order) + 1
	}
	return len(order) // custom
}

// append adds a node that tasks of another sent, if there is room.
func (f *folding) append(from int, n Node) {
	if len(f.graph.Nodes) >= MaxNodes {
		return
	}
	for _, t := range n.Tasks {
		f.nodeOf[t] = len(f.graph.Nodes)
	}
	if from >= 0 {
		f.graph.Edges = append(f.graph.Edges, Edge{From: from, To: len(f.graph.Nodes)})
	}
	f.graph.Nodes = append(f.graph.Nodes, n)
}

// chords adds the edges from the tasks of headers to their bodies.
func (f *folding) chords() {
	members := make(map[string][]int) // nodes by group
	for i, n := range f.nodeOf {
		group := f.groups.Of[f.w.Tasks[i].ID]
		if n >= 0 && group != "" && !slices.Contains(members[group], n) {
			members[group] = append(members[group], n)
		}
	}
	for i, to := range f.nodeOf {
		for _, from := range members[f.groups.Body[f.w.Tasks[i].ID]] {
			if to < 0 || from == to {
				continue
			}
			if at := slices.IndexFunc(f.graph.Edges, func(e Edge) bool { return e.From == from && e.To == to }); at >= 0 {
				f.graph.Edges[at].Waits = true // its last task sent the body
			} else {
				f.graph.Edges = append(f.graph.Edges, Edge{From: from, To: to, Waits: true})
			}
		}
	}
}
