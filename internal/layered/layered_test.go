package layered_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/internal/layered"
)

var gaps = layered.Gaps{Layer: 40, Node: 10}

func sizes(n int) []layered.Size {
	list := make([]layered.Size, n)
	for i := range list {
		list[i] = layered.Size{Width: 100, Height: 20}
	}
	return list
}

func TestChainIsALine(t *testing.T) {
	t.Parallel()
	got := layered.Place(sizes(3), []layered.Edge{{From: 0, To: 1}, {From: 1, To: 2}}, gaps)
	want := layered.Layout{
		Width: 380, Height: 20, Layers: []int{0, 1, 2},
		Nodes: []layered.Point{{X: 0}, {X: 140}, {X: 280}},
		Edges: [][]layered.Point{{{X: 100, Y: 10}, {X: 140, Y: 10}}, {{X: 240, Y: 10}, {X: 280, Y: 10}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Place = %+v, want %+v", got, want)
	}
}

func TestForkAndJoinAreInTheMiddle(t *testing.T) {
	t.Parallel()
	edges := []layered.Edge{{From: 0, To: 1}, {From: 0, To: 2}, {From: 0, To: 3}, {From: 1, To: 4}, {From: 2, To: 4}, {From: 3, To: 4}}
	got := layered.Place(sizes(5), edges, gaps)
	if got.Nodes[0].Y != 30 || got.Nodes[2].Y != 30 || got.Nodes[4].Y != 30 || got.Height != 80 {
		t.Errorf("Nodes = %v, height %d", got.Nodes, got.Height)
	}
}

func TestCyclesAreCut(t *testing.T) {
	t.Parallel()
	got := layered.Place(sizes(3), []layered.Edge{{From: 0, To: 1}, {From: 1, To: 2}, {From: 2, To: 0}, {From: 1, To: 1}}, gaps)
	if len(got.Edges[0]) == 0 || len(got.Edges[1]) == 0 || len(got.Edges[2]) != 0 || len(got.Edges[3]) != 0 {
		t.Errorf("Edges = %v", got.Edges)
	}
}

// Nodes of a layer never overlap, edges lead to the right, and everything lies within the drawing.
func TestLayoutsAreSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "nodes")
		nodes := make([]layered.Size, n)
		for i := range nodes {
			nodes[i] = layered.Size{Width: rapid.IntRange(1, 80).Draw(t, "width"), Height: rapid.IntRange(1, 60).Draw(t, "height")}
		}
		var edges []layered.Edge
		if n > 0 {
			end := rapid.IntRange(0, n-1)
			edges = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) layered.Edge {
				return layered.Edge{From: end.Draw(t, "from"), To: end.Draw(t, "to")}
			}), 0, 60).Draw(t, "edges")
		}
		l := layered.Place(nodes, edges, gaps)
		for i, a := range l.Nodes {
			if a.X < 0 || a.Y < 0 || a.X+nodes[i].Width > l.Width || a.Y+nodes[i].Height > l.Height {
				t.Fatalf("node %d at %v leaves the drawing of %d × %d", i, a, l.Width, l.Height)
			}
			for k, b := range l.Nodes[:i] {
				if l.Layers[i] == l.Layers[k] && a.Y < b.Y+nodes[k].Height && b.Y < a.Y+nodes[i].Height {
					t.Fatalf("nodes %d and %d overlap", i, k)
				}
			}
		}
		for i, points := range l.Edges {
			if len(points) > 0 && l.Layers[edges[i].From] >= l.Layers[edges[i].To] {
				t.Fatalf("edge %d leads back", i)
			}
			for k := 1; k < len(points); k++ {
				if points[k-1].X > points[k].X {
					t.Fatalf("edge %d goes back: %v", i, points)
				}
			}
		}
		if again := layered.Place(nodes, edges, gaps); !reflect.DeepEqual(l, again) {
			t.Fatal("the second drawing differs")
		}
	})
}

func BenchmarkPlace200(b *testing.B) {
	var edges []layered.Edge
	for i := 1; i < 200; i++ {
		edges = append(edges, layered.Edge{From: i / 3, To: i})
	}
	for b.Loop() {
		layered.Place(sizes(200), edges, gaps)
	}
}
