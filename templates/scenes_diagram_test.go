package templates_test

import (
	"fmt"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/causality"
	"github.com/umbelhq/umbel/templates"
)

func diagramScenes() map[string]scene {
	shown := layout(templates.SectionWorkflows, "/workflows/r?tab=graph")
	tab := func(w workflow.Workflow, tab templates.WorkflowTab) templates.Workflow {
		return templates.Workflow{Workflow: w, Tab: tab, Tabs: []templates.Choice{{Text: "Graph", Href: "/ops/workflows/r?tab=graph", Current: true}}}
	}
	graph := func(w workflow.Workflow, groups workflow.Groups, opened ...string) templates.Workflow {
		return tab(w, templates.WorkflowGraph{Workflow: &w, Graph: w.Graph(groups, opened), Tab: "graph", Groups: "Groups are from the stored results of tasks."})
	}
	chord := workflow.Groups{Of: map[string]string{"h1": "group-1", "h2": "group-1", "h3": "group-1"}, Body: map[string]string{"body": "group-1"}}
	large := []workflow.Task{{ID: "r", RootID: "r", Name: "shop.order", State: state.Success}}
	for i := range 500 {
		t := workflow.Task{ID: fmt.Sprintf("t%d", i), ParentID: "r", RootID: "r", Name: "shop.price", State: state.Success, SentAt: noon + int64(i)}
		if i%200 == 7 {
			t.State = state.Failure
		}
		large = append(large, t)
	}
	folded := workflow.Assemble("r", large)
	hostile := workflow.Assemble("r", []workflow.Task{
		{ID: "a", ParentID: evil, RootID: "r", State: state.Pending, Name: evil}, {ID: evil + "2", ParentID: "a", RootID: "r", State: state.Received, Name: evil},
	})
	diagram := func(timed bool) templates.Workflow {
		return tab(order(), templates.SpaceTime{
			Graph: causality.New(spaceTimeEvents()), About: []string{"r"}, Timed: timed, Offsets: map[string]int64{"a": 0},
			ByOrder: templates.Choice{Text: "By cause", Href: "/ops/workflows/r?tab=spacetime", Current: !timed},
			ByTime:  templates.Choice{Text: "By time", Href: "/ops/workflows/r?tab=spacetime&order=time", Current: timed},
			Left:    "Tasks 1 to 2 of 9 by time are drawn, and who sent them.", Later: "/ops/workflows/r?tab=spacetime&from=2",
		})
	}
	return map[string]scene{
		"workflow-graph":          {shown, graph(order(), chord)},
		"workflow-graph-folded":   {shown, graph(folded, workflow.Groups{})},
		"workflow-graph-opened":   {shown, graph(folded, workflow.Groups{}, folded.Graph(workflow.Groups{}, nil).Nodes[1].Key)},
		"workflow-graph-hostile":  {shown, graph(hostile, workflow.Groups{})},
		"workflow-spacetime":      {shown, diagram(false)},
		"workflow-spacetime-time": {shown, diagram(true)},
	}
}

// spaceTimeEvents are those of a task on one host that calls another, which runs on a host whose clock is an hour behind.
func spaceTimeEvents() []causality.Event {
	event := func(kind state.Kind, kinds, task, parent, node string, pid, raw, repaired int64, at float64) causality.Event {
		return causality.Event{
			Kind: kind, Type: kinds, Task: task, Parent: parent, Name: "shop." + task, Process: clock.Process{Hostname: node, PID: pid}, Clock: raw,
			Stamp: clock.Stamp{Clock: repaired, Micros: noon + int64(at*float64(second)), Origin: node},
		}
	}
	return []causality.Event{
		event(state.TaskSent, "task-sent", "r", "", "gen1@web", 0, 3, 10, 0),
		event(state.TaskReceived, "task-received", "r", "", "celery@a", 7, 20, 20, .1),
		event(state.TaskStarted, "task-started", "r", "", "celery@a", 7, 21, 21, .2),
		event(state.TaskSent, "task-sent", "child", "r", "gen8@a", 0, 1, 22, .3),
		event(state.TaskReceived, "task-received", "child", "r", "celery@b", 9, 5, 23, -3600),
		event(state.TaskStarted, "task-started", "child", "r", "celery@b", 9, 6, 24, -3599.9),
		event(state.TaskSucceeded, "task-succeeded", "r", "", "celery@a", 7, 22, 25, .5),
		event(state.TaskFailed, "task-failed", "child", "r", "celery@b", 9, 7, 26, -3590),
	}
}
