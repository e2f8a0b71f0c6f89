package causality

import (
	"slices"

	"github.com/umbelhq/umbel/clock"
)

// Relation is how an event relates to another.
type Relation int8

// Relations. Concurrent means that no evidence orders the two.
const (
	Concurrent Relation = iota
	Before
	After
	Same
)

// String returns before, after, concurrent or same.
func (r Relation) String() string {
	return [...]string{"concurrent", "before", "after", "same"}[r]
}

// Relation returns how a relates to b. Before and After are proved or consistent; that two are concurrent is never
// more than unknown, since an event that would order them may be missing. It takes time in proportion to the graph.
func (g *Graph) Relation(a, b Node) (Relation, Grade) {
	if a == b {
		return Same, Proved
	}
	switch {
	case g.reaches(&g.proved, a, b):
		return Before, Proved
	case g.reaches(&g.proved, b, a):
		return After, Proved
	}
	if r := g.reported(a, b); r != Concurrent {
		return r, Proved
	}
	switch before, after := g.reaches(&g.weak, a, b), g.reaches(&g.weak, b, a); {
	case before && !after:
		return Before, Consistent
	case after && !before:
		return After, Consistent
	}
	return Concurrent, Unknown
}

// reported returns the order in which one life of a process reported two events.
func (g *Graph) reported(a, b Node) Relation {
	p, q := g.place[a], g.place[b]
	switch {
	case p.lane != q.lane, p.life < 0, p.life != q.life, g.lanes[p.lane].shared:
		return Concurrent
	case p.index < q.index:
		return Before
	default:
		return After
	}
}

func (g *Graph) reaches(graph *adjacency, a, b Node) bool {
	return g.walk(graph, a, g.moment[b])[g.moment[b]]
}

// walk marks what can be reached from the moment of an event, until it finds a vertex, if that is not negative.
func (g *Graph) walk(graph *adjacency, from Node, until int32) []bool {
	seen := make([]bool, g.vertices)
	stack := []int32{g.moment[from]}
	seen[stack[0]] = true
	for len(stack) > 0 && (until < 0 || !seen[until]) {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, w := range graph.next(v) {
			if !seen[w] {
				seen[w] = true
				stack = append(stack, w)
			}
		}
	}
	return seen
}

// Cone is the causal past or future of an event. The event itself is in neither.
type Cone struct {
	grade []Grade
	spans []Span
}

// Span is the part of a cone in one process: from its first to its last event there, by the process's own order.
type Span struct {
	Process     clock.Process
	First, Last Node
	Events      int // how many are in the cone
}

// Grade tells how well it is founded that an event is in the cone, Unknown if it is not.
func (c *Cone) Grade(n Node) Grade { return c.grade[n] }

// Spans returns the part of each process that has events in the cone, by name and pid.
func (c *Cone) Spans() []Span { return c.spans }

// Past returns what comes before an event, at least with a grade. An event is in it just where Relation says so.
func (g *Graph) Past(n Node, least Grade) Cone { return g.cone(n, least, Before) }

// Future returns what comes after an event, at least with a grade.
func (g *Graph) Future(n Node, least Grade) Cone { return g.cone(n, least, After) }

func (g *Graph) cone(n Node, least Grade, r Relation) Cone {
	c := Cone{grade: make([]Grade, len(g.events))}
	in, out := g.walk(&g.provedBack, n, -1), g.walk(&g.proved, n, -1)
	if r == After {
		in, out = out, in
	}
	var weakIn, weakOut []bool
	if least <= Consistent {
		weakIn, weakOut = g.walk(&g.weakBack, n, -1), g.walk(&g.weak, n, -1)
		if r == After {
			weakIn, weakOut = weakOut, weakIn
		}
	}
	for i := range g.events {
		m, v := Node(i), g.moment[i]
		switch {
		case m == n, out[v]:
		case in[v], g.reported(m, n) == r:
			c.grade[m] = Proved
		case weakIn != nil && weakIn[v] && !weakOut[v] && g.reported(m, n) == Concurrent:
			c.grade[m] = Consistent
		}
	}
	for i := range g.lanes {
		l := &g.lanes[i]
		s := Span{Process: l.process}
		for _, life := range append(slices.Clip(l.lives), l.loose) {
			for _, m := range life {
				if c.grade[m] == Unknown {
					continue
				}
				if s.Events == 0 {
					s.First = m
				}
				s.Last = m
				s.Events++
			}
		}
		if s.Events > 0 {
			c.spans = append(c.spans, s)
		}
	}
	return c
}

// Around returns the ids of the tasks that have an event before one of a task, and of those that have one after: what may
// have led to something of it, and what it may have led to. All that is at least consistent counts. A task may be both.
func (g *Graph) Around(id string) (before, after map[string]bool) {
	before, after = make(map[string]bool), make(map[string]bool)
	for n := range g.events {
		if g.events[n].Task != id {
			continue
		}
		past, future := g.Past(Node(n), Consistent), g.Future(Node(n), Consistent)
		for m := range g.events {
			if e := &g.events[m]; e.Kind.Task() && e.Task != id {
				if past.grade[m] != Unknown {
					before[e.Task] = true
				}
				if future.grade[m] != Unknown {
					after[e.Task] = true
				}
			}
		}
	}
	return before, after
}
