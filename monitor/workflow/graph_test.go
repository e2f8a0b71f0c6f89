package workflow_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

// tree assembles tasks, each "id parent name" or "id parent name STATE".
func tree(specs ...string) workflow.Workflow {
	var tasks []workflow.Task
	for i, spec := range specs {
		t := workflow.Task{State: state.Success, SentAt: int64(i + 1)}
		var st string
		_, _ = fmt.Sscan(spec, &t.ID, &t.ParentID, &t.Name, &st)
		if t.ParentID == "-" {
			t.ParentID = ""
		}
		if st != "" {
			t.State = state.State(st)
		}
		tasks = append(tasks, t)
	}
	return workflow.Assemble("r", tasks)
}

// lines describes a graph: its nodes in order, each with the nodes that lead to it.
func lines(g workflow.Graph) []string {
	var list []string
	for i, n := range g.Nodes {
		line := fmt.Sprintf("%d %d×%s", i, len(n.Tasks), n.Name)
		if len(n.Tasks) == 0 {
			line = fmt.Sprintf("%d ? %s", i, n.Key)
		}
		if n.Rest {
			line += " more"
		}
		for _, s := range n.States {
			if s.State != state.Success {
				line += fmt.Sprintf(" %d %s", s.Count, s.State)
			}
		}
		for _, e := range g.Edges {
			if e.To == i {
				line += fmt.Sprintf(" <%d", e.From)
				if e.Waits {
					line += "!"
				}
			}
		}
		list = append(list, line)
	}
	return list
}

func chordOf(n int) (workflow.Workflow, workflow.Groups) {
	specs := []string{"r - start"}
	groups := workflow.Groups{Of: map[string]string{}, Body: map[string]string{"b": "g"}}
	for i := range n {
		st := "SUCCESS"
		if i%200 == 100 {
			st = "FAILURE"
		}
		specs = append(specs, fmt.Sprintf("h%d r part %s", i, st))
		groups.Of[fmt.Sprintf("h%d", i)] = "g"
	}
	return tree(append(specs, "b h1 total")...), groups
}

func TestGraphs(t *testing.T) {
	t.Parallel()
	chord, groups := chordOf(3)
	large, largeGroups := chordOf(500)
	for name, tt := range map[string]struct {
		w      workflow.Workflow
		groups workflow.Groups
		want   []string
	}{
		"one task": {w: tree("r - a"), want: []string{"0 1×a"}},
		"chain":    {w: tree("r - a", "x r b", "y x c"), want: []string{"0 1×a", "1 1×b <0", "2 1×c <1"}},
		"chord without groups": {
			w: chord, want: []string{"0 1×start", "1 1×part <0", "2 1×part <0", "3 1×part <0", "4 1×total <2"},
		},
		"chord": {
			w: chord, groups: groups, want: []string{"0 1×start", "1 1×part <0", "2 1×part <0", "3 1×part <0", "4 1×total <2! <1! <3!"},
		},
		"chord of 500": {w: large, groups: largeGroups, want: []string{"0 1×start", "1 500×part 2 FAILURE <0", "2 1×total <1!"}},
		"missing parent": {
			w: tree("x gone a", "y gone b"), want: []string{"0 ? gone", "1 1×a <0", "2 1×b <0"},
		},
		"cycle": {w: tree("x y a", "y x b"), want: []string{"0 1×a", "1 1×b <0"}},
	} {
		if diff := cmp.Diff(tt.want, lines(tt.w.Graph(tt.groups, nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An opened node shows failed tasks first, and the rest as one node.
func TestNodesOpen(t *testing.T) {
	t.Parallel()
	w, groups := chordOf(500)
	folded := w.Graph(groups, nil)
	g := w.Graph(groups, []string{folded.Nodes[1].Key})
	ones, failed := 0, 0
	for _, n := range g.Nodes {
		if n.Name == "part" && len(n.Tasks) == 1 {
			ones++
			if n.States[0].State == state.Failure {
				failed++
			}
		}
	}
	if ones != 40 || failed != 2 || len(g.Opened) != 1 || len(g.Opened[0].Tasks) != 500 {
		t.Errorf("%d tasks are drawn, of them %d failed; opened: %+v", ones, failed, g.Opened)
	}
	if !g.Nodes[len(g.Nodes)-1].Rest && !g.Nodes[41].Rest {
		t.Errorf("no node has the rest: %v", lines(g))
	}
}

func TestGraphsAreBounded(t *testing.T) {
	t.Parallel()
	chain := []string{"r - a"}
	wide := []string{"r - a"}
	for i := range 3000 {
		parent := "r"
		if i > 0 {
			parent = fmt.Sprintf("t%d", i-1)
		}
		chain = append(chain, fmt.Sprintf("t%d %s a", i, parent))
		wide = append(wide, fmt.Sprintf("t%d r n%d", i, i))
	}
	for name, specs := range map[string][]string{"chain": chain, "names": wide} {
		w := tree(specs...)
		g := w.Graph(workflow.Groups{}, nil)
		if len(g.Nodes) != workflow.MaxNodes || g.Omitted != 3001-workflow.MaxNodes {
			t.Errorf("%s: %d nodes, %d tasks omitted", name, len(g.Nodes), g.Omitted)
		}
	}
	var groups []string // 60 names of 5 tasks each: folded as there is no room
	groups = append(groups, "r - a")
	for i := range 300 {
		groups = append(groups, fmt.Sprintf("t%d r n%d", i, i%60))
	}
	w := tree(groups...)
	if g := w.Graph(workflow.Groups{}, nil); len(g.Nodes) != 61 || g.Omitted != 0 {
		t.Errorf("%d nodes, %d tasks omitted", len(g.Nodes), g.Omitted)
	}
}

func BenchmarkGraph(b *testing.B) {
	w, groups := chordOf(4998)
	for b.Loop() {
		w.Graph(groups, nil)
	}
}
