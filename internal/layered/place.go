package layered

// arrange gives every vertex a height: near its neighbours, as the order of its layer allows.
func (g *graph) arrange() {
	for _, layer := range g.layers {
		g.settle(layer, func(int) (int, bool) { return 0, false })
	}
	for i := range 2 * sweeps {
		forward := i%2 == 0
		for k := range g.layers {
			if !forward {
				k = len(g.layers) - 1 - k
			}
			g.settle(g.layers[k], func(v int) (int, bool) {
				near := g.vertices[v].out
				if forward {
					near = g.vertices[v].in
				}
				sum := 0
				for _, n := range near {
					sum += g.vertices[n].y
				}
				return sum / max(len(near), 1), len(near) > 0
			})
		}
	}
}

// block is a run of vertices that touch each other. In it, what each wants is counted from its own place in the run.
type block struct{ first, sum, count int }

func (b block) mean() int { return floorDiv(b.sum, b.count) }

// settle moves the vertices of a layer as near to where they want to be as their order and their gaps allow, which is a
// regression that must not fall: runs that want to pass through each other are joined and lie around their mean.
func (g *graph) settle(layer []int, wanted func(v int) (int, bool)) {
	offset := make([]int, len(layer)) // of each vertex where all touch
	for i := 1; i < len(layer); i++ {
		a, b := g.vertices[layer[i-1]], g.vertices[layer[i]]
		offset[i] = offset[i-1] + (a.Height+b.Height)/2 + g.gaps.Node
	}
	var blocks []block
	for i, v := range layer {
		want, ok := wanted(v)
		if !ok {
			want = g.vertices[v].y
		}
		b := block{first: i, sum: want - offset[i], count: 1}
		for len(blocks) > 0 && blocks[len(blocks)-1].mean() > b.mean() {
			last := blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
			b = block{first: last.first, sum: last.sum + b.sum, count: last.count + b.count}
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		for i := b.first; i < b.first+b.count; i++ {
			g.vertices[layer[i]].y = b.mean() + offset[i]
		}
	}
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// layout returns the places of the first n vertices, which are the nodes, and of the edges.
func (g *graph) layout(n int, paths [][]int) Layout {
	l := Layout{Nodes: make([]Point, n), Edges: make([][]Point, len(paths)), Layers: make([]int, n)}
	left, right := make([]int, len(g.layers)), make([]int, len(g.layers))
	top := 0
	for i, layer := range g.layers {
		width := 0
		for _, v := range layer {
			width = max(width, g.vertices[v].Width)
			top = min(top, g.vertices[v].y-g.vertices[v].Height/2)
		}
		if i > 0 {
			left[i] = l.Width + g.gaps.Layer
		}
		l.Width = left[i] + width
		right[i] = l.Width
	}
	for i := range g.vertices {
		v := &g.vertices[i]
		v.y -= top
		l.Height = max(l.Height, v.y-v.Height/2+v.Height)
		if i < n {
			l.Nodes[i], l.Layers[i] = Point{left[v.layer], v.y - v.Height/2}, v.layer
		}
	}
	for i, path := range paths {
		for k, index := range path {
			v := g.vertices[index]
			switch {
			case k == 0:
				l.Edges[i] = append(l.Edges[i], Point{left[v.layer] + v.Width, v.y})
			case k == len(path)-1:
				l.Edges[i] = append(l.Edges[i], Point{left[v.layer], v.y})
			default: // straight through, past the nodes of the layer
				l.Edges[i] = append(l.Edges[i], Point{left[v.layer], v.y}, Point{right[v.layer], v.y})
			}
		}
	}
	return l
}
