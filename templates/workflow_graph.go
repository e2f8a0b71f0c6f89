package templates

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/internal/layered"
	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

// WorkflowGraph is the tab of a workflow that shows it as a graph.
type WorkflowGraph struct {
	Workflow *workflow.Workflow
	Graph    workflow.Graph
	Tab      string // name of the tab in the address
	Groups   string // what is known of groups, a sentence
}

// Content draws the tab.
func (v WorkflowGraph) Content(u URLs) templ.Component {
	return region("workflow-graph", workflowGraph(u, v, v.layOut(u)))
}

// Measures of the drawing, in pixels.
const (
	nodeWidth, nodeHeight   = 216, 62
	layerGap, nodeGap, edge = 56, 14, 8
	nodeText                = 26 // characters of a line
)

// drawnGraph is a graph with coordinates.
type drawnGraph struct {
	Width, Height int
	Nodes         []graphNode
	Edges         []graphEdge
}

type graphNode struct {
	workflow.Node
	X, Y          int
	Href          templ.SafeURL
	Title         string // its name and what it stands for, uncut
	Stated, Notes string
	After         []string // names of the nodes that lead to it
}

type graphEdge struct {
	Path, Text string
	Waits      bool
}

// layOut gives the graph coordinates.
func (v WorkflowGraph) layOut(u URLs) drawnGraph {
	g := &v.Graph
	sizes, edges := make([]layered.Size, len(g.Nodes)), make([]layered.Edge, len(g.Edges))
	for i := range sizes {
		sizes[i] = layered.Size{Width: nodeWidth, Height: nodeHeight}
	}
	for i, e := range g.Edges {
		edges[i] = layered.Edge{From: e.From, To: e.To}
	}
	l := layered.Place(sizes, edges, layered.Gaps{Layer: layerGap, Node: nodeGap})
	d := drawnGraph{Width: l.Width + 2*edge, Height: l.Height + 2*edge}
	for i, n := range g.Nodes {
		d.Nodes = append(d.Nodes, graphNode{
			Node: n, X: l.Nodes[i].X + edge, Y: l.Nodes[i].Y + edge, Href: v.href(u, n), Title: v.title(n), Stated: nodeStates(n), Notes: v.notes(n),
		})
	}
	for i, e := range g.Edges {
		drawn := graphEdge{Path: curve(l.Edges[i]), Waits: e.Waits, Text: v.title(g.Nodes[e.From]) + " sent " + v.title(g.Nodes[e.To])}
		if e.Waits {
			drawn.Text = v.title(g.Nodes[e.To]) + " is the body of the chord with " + v.title(g.Nodes[e.From])
		}
		d.Edges = append(d.Edges, drawn)
		d.Nodes[e.To].After = append(d.Nodes[e.To].After, v.title(g.Nodes[e.From]))
	}
	return d
}

// curve is a path through points: bent between layers, straight through them.
func curve(points []layered.Point) string {
	var b strings.Builder
	for i, p := range points {
		x, y := strconv.Itoa(p.X+edge), strconv.Itoa(p.Y+edge)
		if i == 0 {
			b.WriteString("M" + x + " " + y)
			continue
		}
		before := points[i-1]
		middle := strconv.Itoa((before.X+p.X)/2 + edge)
		b.WriteString("C" + middle + " " + strconv.Itoa(before.Y+edge) + " " + middle + " " + y + " " + x + " " + y)
	}
	return b.String()
}

// href leads to the task of a node, or opens the node.
func (v WorkflowGraph) href(u URLs, n workflow.Node) templ.SafeURL {
	switch len(n.Tasks) {
	case 0:
		return u.task(n.Key)
	case 1:
		return u.task(v.Workflow.Tasks[n.Tasks[0]].ID)
	}
	if n.Rest {
		return v.shut(u, n.Key)
	}
	return v.opened(u, append(v.openKeys(""), n.Key))
}

// shut is the graph with a node folded again.
func (v WorkflowGraph) shut(u URLs, key string) templ.SafeURL { return v.opened(u, v.openKeys(key)) }

// openKeys are the opened nodes but one.
func (v WorkflowGraph) openKeys(but string) []string {
	var keys []string
	for _, n := range v.Graph.Opened {
		if n.Key != but {
			keys = append(keys, n.Key)
		}
	}
	return keys
}

func (v WorkflowGraph) opened(u URLs, keys []string) templ.SafeURL {
	q := url.Values{"tab": {v.Tab}, "open": keys}
	if len(keys) == 0 {
		q.Del("open")
	}
	return u.path(WorkflowPath(v.Workflow.Root) + "?" + q.Encode() + "#workflow-graph")
}

// title names a node in full.
func (v WorkflowGraph) title(n workflow.Node) string {
	name := cmp.Or(n.Name, "name unknown")
	switch {
	case len(n.Tasks) == 0:
		return "task " + shortID(n.Key)
	case n.Rest:
		return number(len(n.Tasks)) + " more × " + name
	case len(n.Tasks) > 1:
		return number(len(n.Tasks)) + " × " + name
	}
	return name
}

// label is the title of a node on one line of it.
func label(n graphNode) string {
	name := n.Title
	if module := taskModule(n.Name); module != "" {
		name = strings.Replace(name, module, "", 1)
	}
	return short(name)
}

func short(s string) string { return truncate.Chars(s, nodeText) }

// nodeStates says how many tasks of a node are in which state.
func nodeStates(n workflow.Node) string {
	switch len(n.Tasks) {
	case 0:
		return "not retained"
	case 1:
		return stateWord(n.States[0].State)
	}
	parts := make([]string, len(n.States))
	for i, s := range n.States {
		parts[i] = number(s.Count) + " " + inState(s.State)
	}
	return strings.Join(parts, ", ")
}

// inState says of tasks that they are in a state.
func inState(st state.State) string {
	switch st {
	case state.Success:
		return "succeeded"
	case state.Failure:
		return "failed"
	default:
		return strings.ToLower(stateWord(st))
	}
}

// notes are how long a node took, and its group.
func (v WorkflowGraph) notes(n workflow.Node) string {
	var parts []string
	if n.Ran > 0 {
		ran := "ran " + duration(float64(n.Ran)/1e6)
		if len(n.Tasks) > 1 {
			ran = "longest " + duration(float64(n.Ran)/1e6)
		}
		parts = append(parts, ran)
	}
	if len(n.Tasks) == 1 {
		if tries := len(v.Workflow.Tasks[n.Tasks[0]].Executions); tries > 1 {
			parts = append(parts, number(tries)+" runs")
		}
	}
	if n.Group != "" {
		parts = append(parts, "group "+head(n.Group, 4))
	}
	return strings.Join(parts, ", ")
}

// about describes the drawing to those who do not see it.
func (v WorkflowGraph) about(d drawnGraph) string {
	return "Graph of the workflow: " + plural(len(d.Nodes), "node", "nodes") + ", " + plural(len(d.Edges), "edge", "edges") + ". The table below has the same."
}

// waits reports whether an edge leads to the body of a chord.
func (d drawnGraph) waits() bool {
	return slices.ContainsFunc(d.Edges, func(e graphEdge) bool { return e.Waits })
}
