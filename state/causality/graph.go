package causality

import (
	"cmp"
	"slices"

	"github.com/umbelhq/umbel/clock"
)

// MaxEvents bounds the events of one graph. New leaves out those with the latest timestamps.
const MaxEvents = 200_000

// Tolerance is how much earlier, in µs, a later event of one process may be stamped: threads take their clocks and
// their timestamps at slightly different moments. No Celery process can begin its next life within it.
const Tolerance int64 = 100_000

// Node is an event of a Graph, by its place in the order that Events has.
type Node int32

// EdgeKind says why one event comes before another.
type EdgeKind uint8

// Kinds of edges.
const (
	SameProcess EdgeKind = iota + 1 // one process reported one after the other
	Message                         // task-sent → task-received of one attempt
	Execution                       // task-received → task-started of one execution
	Lineage                         // task-sent that no task published → task-sent and task-received of what came of it
	Child                           // a task → the task-sent, or else the task-received, of a task that it called
	Return                          // task-sent of a called task, or of the next attempt → end of the execution that called it
	Retry                           // an attempt → the task-sent, or else the task-received, of the next
	Reported                        // command → reply
	Effect                          // command that is to revoke a task → task-revoked
	Gossip                          // heartbeat → the first event of another process whose clock is past it
)

// String returns a few words, such as "message".
func (k EdgeKind) String() string {
	return [...]string{"", "same process", "message", "execution", "lineage", "child", "return", "retry", "reply", "effect", "gossip"}[min(k, Gossip)]
}

// Edge says that one event came before another, and why.
type Edge struct {
	From, To Node
	Kind     EdgeKind
	Grade    Grade
}

// Graph is the causal order of some events. It does not change, and is safe for concurrent use.
type Graph struct {
	events []Event
	left   int // events over MaxEvents

	lanes    []lane
	place    []place // of each event
	vertices int
	vertex   []int32 // of the report of each event
	moment   []int32 // of what it reports: another vertex if that may be earlier

	edges   []Edge // by From, then To
	in, out [][]int32

	proved, weak         adjacency // of vertices; weak has the proved ones too
	provedBack, weakBack adjacency // the same backwards
	order                []Node
}

// lane is one process, and its lives by time. Without evidence that a pid was reused there is one.
type lane struct {
	process clock.Process
	lives   [][]Node // by raw clock
	loose   []Node   // events without a clock, by time
	shared  bool     // two events have one clock: several processes use its name and pid
}

type place struct{ lane, life, index int32 }

// New returns the graph of the events, in any order; equal ones count once. It keeps neither the slice nor changes it,
// but shares its strings.
func New(events []Event) *Graph {
	g := &Graph{events: slices.Clone(events)}
	slices.SortFunc(g.events, func(a, b Event) int { return compare(&a, &b) })
	g.events = slices.CompactFunc(g.events, func(a, b Event) bool {
		return a.Process == b.Process && a.Clock == b.Clock && a.Kind == b.Kind && a.Task == b.Task && a.Stamp.Micros == b.Stamp.Micros
	})
	if g.left = len(g.events) - MaxEvents; g.left > 0 {
		g.events = g.events[:MaxEvents]
	}
	b := &builder{g: g}
	b.processes()
	b.vertices()
	b.tasks()
	b.commands()
	b.gossip()
	b.finish()
	return g
}

// Len returns the number of events.
func (g *Graph) Len() int { return len(g.events) }

// Left returns how many events the graph left out since there were more than MaxEvents.
func (g *Graph) Left() int { return max(g.left, 0) }

// Event returns the event of a node.
func (g *Graph) Event(n Node) Event { return g.events[n] }

// Find returns the node of an event, false if it is not in the graph.
func (g *Graph) Find(e Event) (Node, bool) {
	i, _ := slices.BinarySearchFunc(g.events, e, func(a, b Event) int { return cmp.Compare(a.Stamp.Micros, b.Stamp.Micros) })
	for ; i < len(g.events) && g.events[i].Stamp.Micros == e.Stamp.Micros; i++ {
		if v := &g.events[i]; v.Process == e.Process && v.Clock == e.Clock && v.Kind == e.Kind && v.Task == e.Task {
			return Node(i), true
		}
	}
	return 0, false
}

// OfTask returns the events of a task, in the order of Order.
func (g *Graph) OfTask(id string) (nodes []Node) {
	for _, n := range g.order {
		if g.events[n].Task == id {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Processes returns the processes, by name and pid.
func (g *Graph) Processes() []clock.Process {
	all := make([]clock.Process, len(g.lanes))
	for i := range g.lanes {
		all[i] = g.lanes[i].process
	}
	return all
}

// Process returns the number in Processes of the process of an event, and which life of its pid the event belongs to.
func (g *Graph) Process(n Node) (process, life int) {
	p := g.place[n]
	return int(p.lane), int(max(p.life, 0))
}

// Edges returns all edges, by From, then To. It must not be changed.
func (g *Graph) Edges() []Edge { return g.edges }

// In returns the edges into an event, Out those out of it.
func (g *Graph) In(n Node) []Edge { return g.pick(g.in[n]) }

// Out returns the edges out of an event.
func (g *Graph) Out(n Node) []Edge { return g.pick(g.out[n]) }

func (g *Graph) pick(numbers []int32) []Edge {
	edges := make([]Edge, len(numbers))
	for i, n := range numbers {
		edges[i] = g.edges[n]
	}
	return edges
}

// adjacency is a directed graph of vertices in two arrays.
type adjacency struct{ start, to []int32 }

func (a *adjacency) next(v int32) []int32 { return a.to[a.start[v]:a.start[v+1]] }

// reversed returns the graph with all edges turned round.
func (a *adjacency) reversed() adjacency {
	back := adjacency{start: make([]int32, len(a.start)), to: make([]int32, len(a.to))}
	for _, w := range a.to {
		back.start[w+1]++
	}
	for v := 1; v < len(back.start); v++ {
		back.start[v] += back.start[v-1]
	}
	at := slices.Clone(back.start)
	for v := range int32(len(a.start) - 1) {
		for _, w := range a.next(v) {
			back.to[at[w]] = v
			at[w]++
		}
	}
	return back
}

// arc is an edge between vertices.
type arc struct {
	from, to int32
	grade    Grade
}

// newAdjacency returns the arcs of at least a grade.
func newAdjacency(vertices int, arcs []arc, least Grade) adjacency {
	a := adjacency{start: make([]int32, vertices+1)}
	for _, e := range arcs {
		if e.grade >= least {
			a.start[e.from+1]++
		}
	}
	for v := range vertices {
		a.start[v+1] += a.start[v]
	}
	a.to = make([]int32, a.start[vertices])
	at := slices.Clone(a.start)
	for _, e := range arcs {
		if e.grade >= least {
			a.to[at[e.from]] = e.to
			at[e.from]++
		}
	}
	return a
}
