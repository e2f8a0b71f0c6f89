package causality

import (
	"container/heap"
	"slices"

	"github.com/umbelhq/umbel/state"
)

// demoteCycles takes the proof from edges that form a cycle: what contradicts itself proves nothing. They remain as
// consistent ones.
func (b *builder) demoteCycles() {
	g := b.g
	component := components(g.vertices, newAdjacency(g.vertices, b.arcs, Proved))
	for i := range b.arcs {
		if a := &b.arcs[i]; component[a.from] == component[a.to] {
			a.grade = min(a.grade, Consistent)
		}
	}
	for i := range g.edges {
		e := &g.edges[i]
		from := g.moment[e.From]
		if e.Kind == SameProcess || e.Kind == Return {
			from = g.vertex[e.From]
		}
		to := g.moment[e.To]
		if e.Kind == SameProcess {
			to = g.vertex[e.To]
		}
		if component[from] == component[to] {
			e.Grade = min(e.Grade, Consistent)
		}
	}
}

// components numbers the strongly connected components (Tarjan 1972), without recursion: hostile parents make deep
// graphs.
func components(vertices int, a adjacency) []int32 {
	component, index, low := make([]int32, vertices), make([]int32, vertices), make([]int32, vertices)
	at := slices.Clone(a.start[:vertices])
	var stack, path []int32
	next, found := int32(1), int32(1)
	for root := range int32(vertices) {
		if index[root] != 0 {
			continue
		}
		path = append(path[:0], root)
		for len(path) > 0 {
			v := path[len(path)-1]
			if index[v] == 0 {
				index[v], low[v] = next, next
				next++
				stack = append(stack, v)
			}
			descended := false
			for at[v] < a.start[v+1] {
				w := a.to[at[v]]
				if index[w] == 0 {
					path, descended = append(path, w), true
					break
				}
				if component[w] == 0 {
					low[v] = min(low[v], low[w])
				}
				at[v]++
			}
			if descended {
				continue
			}
			path = path[:len(path)-1]
			if low[v] != index[v] {
				continue
			}
			for {
				w := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				component[w] = found
				if w == v {
					break
				}
			}
			found++
		}
	}
	return component
}

// order sorts the events topologically, ties by timestamp. Consistent edges and the order of reports in a process count
// where nothing contradicts them: of what only those hold back, the event with the earliest timestamp comes next.
func (b *builder) order() {
	g := b.g
	event := make([]Node, g.vertices)
	for n := range g.events {
		event[g.vertex[n]], event[g.moment[n]] = Node(n), Node(n)
	}
	for _, a := range b.arcs {
		if a.grade == Consistent {
			b.soft = append(b.soft, a)
		}
	}
	hard, soft := make([]int32, g.vertices), make([]int32, g.vertices)
	weak := newAdjacency(g.vertices, b.soft, Consistent)
	for _, v := range g.proved.to {
		hard[v]++
	}
	for _, v := range weak.to {
		soft[v]++
	}
	free, blocked := &vertexHeap{event: event}, &vertexHeap{event: event} // blocked ones wait for soft edges only
	push := func(v int32) {
		switch {
		case hard[v] > 0:
		case soft[v] > 0:
			heap.Push(blocked, v)
		default:
			heap.Push(free, v)
		}
	}
	done := make([]bool, g.vertices)
	for v := range int32(g.vertices) {
		push(v)
	}
	g.order = make([]Node, 0, len(g.events))
	for free.Len()+blocked.Len() > 0 {
		from := free
		if free.Len() == 0 {
			from = blocked
		}
		v := heap.Pop(from).(int32) //nolint:forcetypeassert // only those are in it
		if done[v] {
			continue
		}
		done[v] = true
		if n := event[v]; g.moment[n] == v {
			g.order = append(g.order, n)
		}
		for _, w := range g.proved.next(v) {
			hard[w]--
			push(w)
		}
		for _, w := range weak.next(v) {
			if !done[w] {
				soft[w]--
				push(w)
			}
		}
	}
}

// vertexHeap is a heap of vertices by the order of their events.
type vertexHeap struct {
	event    []Node
	vertices []int32
}

func (h *vertexHeap) Len() int { return len(h.vertices) }

func (h *vertexHeap) Less(i, j int) bool {
	a, b := h.vertices[i], h.vertices[j]
	return h.event[a] < h.event[b] || h.event[a] == h.event[b] && a < b
}
func (h *vertexHeap) Swap(i, j int) { h.vertices[i], h.vertices[j] = h.vertices[j], h.vertices[i] }
func (h *vertexHeap) Push(v any)    { h.vertices = append(h.vertices, v.(int32)) } //nolint:forcetypeassert // see order

func (h *vertexHeap) Pop() any {
	last := len(h.vertices) - 1
	v := h.vertices[last]
	h.vertices = h.vertices[:last]
	return v
}

// Order returns all events in causal order, ties by timestamp: no proved edge leads back in it, and a consistent one only
// where it contradicts others. It must not be changed.
func (g *Graph) Order() []Node { return g.order }

// Inversions returns the proved edges along which timestamps fall: where wall clocks tell another order than causes do.
// Edges inside a host are not among them: reports may be late, by less than Tolerance.
func (g *Graph) Inversions() (edges []Edge) {
	for _, e := range g.edges {
		from, to := &g.events[e.From], &g.events[e.To]
		if e.Grade == Proved && from.Stamp.Micros > to.Stamp.Micros && to.Stamp.Micros != 0 && state.Host(from.Process.Hostname) != state.Host(to.Process.Hostname) {
			edges = append(edges, e)
		}
	}
	return edges
}
