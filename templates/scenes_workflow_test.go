package templates_test

import (
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

func workflowScenes() map[string]scene {
	shown := layout(templates.SectionWorkflows, "/workflows/r")
	waterfall := func(w workflow.Workflow, open ...string) templates.Workflow {
		return templates.Workflow{
			Workflow: w, Tab: templates.NewWaterfall(&w, templates.WaterfallOptions{Open: open}),
			Tabs: []templates.Choice{{Text: "Waterfall", Href: "/ops/workflows/r", Current: true}, {Text: "Graph", Href: "/ops/workflows/r?tab=graph"}},
		}
	}
	cut := workflow.Assemble("r", []workflow.Task{
		{ID: "a", ParentID: "b", RootID: "r", State: state.Pending}, {ID: "b", ParentID: "a", RootID: "r", State: state.Received, Name: evil},
	})
	cut.Size, cut.AtLeast = 10_000, true

	listed := layout(templates.SectionWorkflows, "/workflows")
	list := templates.Workflows{Older: "/ops/workflows?cursor=3", All: "/ops/workflows", Statuses: []templates.WorkflowChoice{{Href: "/ops/workflows"}, {Status: workflow.Failed, Href: "/ops/workflows?state=failed"}}}
	for i, s := range []workflow.Summary{
		{Tasks: 20, Over: 7, Failed: 1, StartedAt: noon},
		{Tasks: 5_000, Over: 5_000, StartedAt: noon, EndedAt: noon + 90*second},
		{Tasks: 3, Over: 3, Failed: 2, Lost: 1, StartedAt: noon, EndedAt: noon + second},
		{Tasks: 2, Over: 2, Lost: 1},
	} {
		list.Workflows = append(list.Workflows, history.WorkflowSummary{Summary: s, Root: strings.Repeat("r", i+1), Name: "shop.order"})
	}
	list.Roots = map[string]state.Task{"r": {Args: new("('SKU-1', 4)"), Kwargs: new("{'warehouse': 'BER1'}")}, evil: {Args: new(evil)}}
	list.Workflows = append(list.Workflows, history.WorkflowSummary{Root: evil, Name: evil}, history.WorkflowSummary{Root: "0b75f1a2-0000"})

	return map[string]scene{
		"workflows":          {listed, list},
		"workflows-none":     {dark(listed), templates.Workflows{}},
		"workflows-no-match": {listed, templates.Workflows{Status: workflow.Lost, Name: evil, All: "/ops/workflows"}},
		"workflow":           {shown, waterfall(order())},
		"workflow-idle":      {shown, waterfall(idle())},
		"workflow-folded":    {shown, waterfall(manyChildren())},
		"workflow-hostile":   {shown, waterfall(cut)},
	}
}

// familyOf is what surrounds a task.
func familyOf(id string, tasks ...workflow.Task) templates.Family {
	return templates.Family{Waterfall: templates.NewWaterfall(new(workflow.Assemble(id, tasks)), templates.WaterfallOptions{About: id})}
}

// order is a workflow with a chord whose body waits for its slowest header task, a retry, and a task that is running.
func order() workflow.Workflow {
	at := func(seconds float64) int64 { return noon + int64(seconds*float64(second)) }
	run := func(queued, received, started, ended float64) workflow.Execution {
		e := workflow.Execution{Worker: "celery@a", PID: 7, State: state.Success, QueuedAt: at(queued), ReceivedAt: at(received), StartedAt: at(started)}
		if ended == 0 {
			e.State = state.Started
		} else {
			e.EndedAt = at(ended)
		}
		return e
	}
	task := func(id, parent, name string, runs ...workflow.Execution) workflow.Task {
		t := workflow.Task{ID: id, ParentID: parent, RootID: "r", Name: name, State: state.Pending, Executions: runs}
		if len(runs) > 0 {
			t.State, t.SentAt = runs[len(runs)-1].State, runs[0].QueuedAt
		}
		return t
	}
	retried := run(9, 9.1, 9.2, 9.3)
	retried.State = state.Retry
	again := run(9.3, 9.3, 10.5, 11)
	again.Attempt = 1
	failed := run(.5, .6, .7, 1)
	failed.State = state.Failure
	return workflow.Assemble("r", []workflow.Task{
		task("r", "", "shop.order", run(0, .1, .2, .6)),
		task("h1", "r", "shop.price", run(.4, .5, .6, 1)),
		task("h2", "r", "shop.price", run(.4, .5, 1, 8)),
		task("h3", "r", "shop.price", run(.4, .5, .6, 1.2)),
		task("body", "h2", "shop.total", run(8, 8.1, 8.2, 9)),
		task("mail", "body", "shop.mail", retried, again),
		task("log", "r", "shop.log", failed),
		task("last", "mail", "shop.archive", run(11, 11.1, 11.2, 0)),
		task("sent", "mail", "shop.later"),
	})
}

// idle is a workflow in which nothing happens for ten minutes between two attempts.
func idle() workflow.Workflow {
	run := func(attempt, queued, started, ended int64, s state.State) workflow.Execution {
		return workflow.Execution{Attempt: attempt, Worker: "celery@a", State: s, QueuedAt: noon + queued*second, ReceivedAt: noon + queued*second, StartedAt: noon + started*second, EndedAt: noon + ended*second}
	}
	return workflow.Assemble("r", []workflow.Task{{
		ID: "r", Name: "shop.order", State: state.Success, SentAt: noon,
		Executions: []workflow.Execution{run(0, 0, 1, 3, state.Retry), run(1, 3, 603, 610, state.Success)},
	}, {ID: "next", ParentID: "r", Name: "shop.mail", State: state.Pending, SentAt: noon + 609*second}})
}

// manyChildren is a workflow of a task with 500 children, of which three failed.
func manyChildren() workflow.Workflow {
	tasks := []workflow.Task{{ID: "r", Name: "shop.all", State: state.Success, SentAt: noon}}
	for i := range 500 {
		t := workflow.Task{ID: "c" + strconv.Itoa(i), ParentID: "r", RootID: "r", Name: "shop.one", State: state.Success, SentAt: noon}
		if i < 3 {
			t.State = state.Failure
		}
		t.Executions = []workflow.Execution{{Worker: "celery@a", State: t.State, QueuedAt: noon, ReceivedAt: noon + second, StartedAt: noon + second, EndedAt: noon + int64(i+2)*second}}
		tasks = append(tasks, t)
	}
	return workflow.Assemble("r", tasks)
}
