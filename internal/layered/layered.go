// Package layered gives the nodes of a directed graph places in layers from left to right, after Sugiyama, Tagawa and Toda:
// edges lead to the right and cross rarely, and nodes lie near those that they are joined to. It computes in whole pixels, so
// that equal graphs have equal drawings on every machine. It draws nothing.
package layered

import (
	"cmp"
	"slices"
)

// Size is the size of a node, in pixels.
type Size struct{ Width, Height int }

// Point is a place in the drawing, in pixels from its top left.
type Point struct{ X, Y int }

// Edge leads from a node to another, by their indexes.
type Edge struct{ From, To int }

// Gaps are the least distances between nodes, in pixels.
type Gaps struct{ Layer, Node int }

// Layout is a graph with places.
type Layout struct {
	Width, Height int
	Nodes         []Point   // top left corners, in the order of the nodes
	Edges         [][]Point // in the order of the edges: from the right side of a node, through every layer between, to the left side of the other
	Layers        []int     // of each node, from 0
}

// sweeps is how often the order of layers and the places in them are improved.
const sweeps = 6

// Place gives a graph places. Edges to the node that they come from, and those that close a cycle, have no points.
func Place(nodes []Size, edges []Edge, gaps Gaps) Layout {
	g := &graph{gaps: gaps}
	for _, s := range nodes {
		g.vertices = append(g.vertices, vertex{Size: s})
	}
	used := g.assignLayers(edges)
	paths := g.split(edges, used)
	g.order()
	g.arrange()
	return g.layout(len(nodes), paths)
}

// graph is a graph while it is placed. Vertices are its nodes, and behind them the bends of edges that cross layers.
type graph struct {
	gaps     Gaps
	vertices []vertex
	layers   [][]int // vertices from top to bottom
}

type vertex struct {
	Size
	layer, index int // index within the layer
	y            int // of its middle
	in, out      []int
}

// assignLayers puts each node one layer behind the last one that leads to it, and reports which edges are used.
func (g *graph) assignLayers(edges []Edge) []bool {
	used := make([]bool, len(edges))
	from, waits := make([][]int, len(g.vertices)), make([]int, len(g.vertices))
	for i, e := range edges {
		if e.From != e.To {
			used[i] = true
			from[e.From] = append(from[e.From], i)
			waits[e.To]++
		}
	}
	done := make([]bool, len(g.vertices))
	var ready []int
	for next := range g.vertices {
		if waits[next] == 0 {
			ready = append(ready, next)
		}
	}
	for next := 0; ; {
		for ; len(ready) > 0; ready = ready[1:] {
			v := ready[0]
			done[v] = true
			for _, i := range from[v] {
				to := edges[i].To
				if done[to] {
					used[i] = false // it would lead back
					continue
				}
				g.vertices[to].layer = max(g.vertices[to].layer, g.vertices[v].layer+1)
				if waits[to]--; waits[to] == 0 {
					ready = append(ready, to)
				}
			}
		}
		for next < len(done) && done[next] {
			next++
		}
		if next == len(done) {
			return used
		}
		waits[next] = 0 // part of a cycle, which is cut before its first node
		ready = append(ready, next)
	}
}

// split gives edges that cross layers a bend in each, and returns the vertices of every edge.
func (g *graph) split(edges []Edge, used []bool) [][]int {
	paths := make([][]int, len(edges))
	for i, e := range edges {
		if !used[i] {
			continue
		}
		path := []int{e.From}
		for layer := g.vertices[e.From].layer + 1; layer < g.vertices[e.To].layer; layer++ {
			path = append(path, len(g.vertices))
			g.vertices = append(g.vertices, vertex{layer: layer})
		}
		path = append(path, e.To)
		for k := 1; k < len(path); k++ {
			a, b := path[k-1], path[k]
			g.vertices[a].out = append(g.vertices[a].out, b)
			g.vertices[b].in = append(g.vertices[b].in, a)
		}
		paths[i] = path
	}
	return paths
}

// order sorts each layer so that few edges cross. It starts with the order in which a walk comes to the vertices, which is
// right for trees.
func (g *graph) order() {
	seen := make([]bool, len(g.vertices))
	var visit func(v int)
	visit = func(v int) {
		if seen[v] {
			return
		}
		seen[v] = true
		for len(g.layers) <= g.vertices[v].layer {
			g.layers = append(g.layers, nil)
		}
		layer := &g.layers[g.vertices[v].layer]
		g.vertices[v].index = len(*layer)
		*layer = append(*layer, v)
		for _, next := range g.vertices[v].out {
			visit(next)
		}
	}
	for v := range g.vertices {
		if len(g.vertices[v].in) == 0 {
			visit(v)
		}
	}
	best, least := g.copyLayers(), g.crossings()
	for i := 0; i < sweeps && least > 0; i++ {
		g.sweep(i%2 == 0)
		if n := g.crossings(); n < least {
			best, least = g.copyLayers(), n
		}
	}
	g.layers = best
	for _, layer := range g.layers {
		g.number(layer)
	}
}

func (g *graph) copyLayers() [][]int {
	layers := make([][]int, len(g.layers))
	for i := range layers {
		layers[i] = slices.Clone(g.layers[i])
	}
	return layers
}

func (g *graph) number(layer []int) {
	for i, v := range layer {
		g.vertices[v].index = i
	}
}

// sweep sorts each layer by the middle of the neighbours of its vertices, in the layer before it or behind it.
func (g *graph) sweep(forward bool) {
	for i := range g.layers {
		if !forward {
			i = len(g.layers) - 1 - i
		}
		middle := func(v int) int {
			near := g.vertices[v].out
			if forward {
				near = g.vertices[v].in
			}
			if len(near) == 0 {
				return g.vertices[v].index * scale
			}
			sum := 0
			for _, n := range near {
				sum += g.vertices[n].index
			}
			return sum * scale / len(near)
		}
		slices.SortStableFunc(g.layers[i], func(a, b int) int { return cmp.Compare(middle(a), middle(b)) })
		g.number(g.layers[i])
	}
}

// scale makes means of indexes finer than an index.
const scale = 1024

// crossings counts how often edges cross.
func (g *graph) crossings() int {
	total := 0
	for _, layer := range g.layers {
		var ends []int // of edges, by their beginnings
		for _, v := range layer {
			to := slices.Clone(g.vertices[v].out)
			slices.SortFunc(to, func(a, b int) int { return cmp.Compare(g.vertices[a].index, g.vertices[b].index) })
			for _, end := range to {
				ends = append(ends, g.vertices[end].index)
			}
		}
		total += inversions(ends, make([]int, len(ends)))
	}
	return total
}

// inversions counts the pairs of list that are not in order, and sorts it.
func inversions(list, spare []int) int {
	if len(list) < 2 {
		return 0
	}
	half := len(list) / 2
	n := inversions(list[:half], spare[:half]) + inversions(list[half:], spare[half:])
	i, j := 0, half
	for k := range spare {
		if j == len(list) || i < half && list[i] <= list[j] {
			spare[k] = list[i]
			i++
		} else {
			spare[k] = list[j]
			n += half - i
			j++
		}
	}
	copy(list, spare)
	return n
}
