package templates_test

import (
	"maps"
	"strings"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/causality"
	"github.com/umbelhq/umbel/templates"
)

// noon is 2026-11-21 12:00 UTC in µs.
const noon = int64(1_795_262_400_000_000)

const second = int64(1_000_000)

// scene is a page in a certain situation.
type scene struct {
	layout templates.Layout
	view   templates.View
}

func scenes() map[string]scene {
	all := map[string]scene{
		"overview":          {layout(templates.SectionOverview, "/"), overview()},
		"overview-past":     {past(layout(templates.SectionOverview, "/")), overview()},
		"overview-fresh":    {layout(templates.SectionOverview, "/"), templates.Overview{Health: connected()}},
		"overview-starting": {starting(layout(templates.SectionOverview, "/")), templates.Overview{Health: starting(layout("", "")).Health}},
		"overview-down":     {down(layout(templates.SectionOverview, "/")), overviewDown()},
		"tasks":             {layout(templates.SectionTasks, "/tasks"), tasks()},
		"tasks-filtered":    {dark(layout(templates.SectionTasks, "/tasks?q=state%3Afailure")), tasksFiltered()},
		"tasks-wrong":       {layout(templates.SectionTasks, ""), tasksWrong()},
		"tasks-empty":       {layout(templates.SectionTasks, "/tasks"), templates.Tasks{Chart: chartOff(), Total: history.Count{Exact: true}}},
		"tasks-searching":   {layout(templates.SectionTasks, "/tasks?q=x"), tasksSearching()},
		"tasks-none":        {layout(templates.SectionTasks, "/tasks?q=name%3Ax"), tasksNone()},
		"task":              {layout(templates.SectionTasks, "/tasks/"+retried().ID), task()},
		"task-orphaned":     {layout(templates.SectionTasks, "/tasks/o"), templates.Task{Task: orphaned()}},
		"task-returned":     {layout(templates.SectionTasks, "/tasks/r"), templates.Task{Task: returned()}},
		"task-incomplete":   {layout(templates.SectionTasks, "/tasks/o"), templates.Task{Task: replaced(), Incomplete: true}},
		"task-replaced":     {layout(templates.SectionTasks, "/tasks/x"), templates.Task{Task: replaced()}},
		"task-expired":      {layout(templates.SectionTasks, "/tasks/x"), templates.Task{Task: revoked(state.Revocation{Expired: true})}},
		"task-terminated": {layout(templates.SectionTasks, "/tasks/x"), templates.Task{
			Task:     revoked(state.Revocation{Terminated: true, Signum: 15}),
			Commands: []history.Command{{ID: 8, RequestID: 8, Summary: "Terminate task 3f2a", State: "done", Actor: "ann", CreatedAt: at(0)}},
			Effects:  map[int64]command.Effect{8: {Text: "terminated while it ran", Grade: causality.Proved}},
		}},
		"task-sent":           {layout(templates.SectionTasks, "/tasks/s"), templates.Task{Task: sent()}},
		"task-hostile":        {layout(templates.SectionTasks, "/tasks/h"), templates.Task{Task: hostile(), Family: familyOf(evil, workflow.Task{ID: evil, Name: evil, ParentID: evil, State: evil}, workflow.Task{ID: "child", Name: evil, ParentID: evil})}},
		"failures-span":       {layout(templates.SectionFailures, "/failures"), failuresInSpan()},
		"failure-span":        {layout(templates.SectionFailures, "/failures/0dd7dc58725190cd"), failureInSpan()},
		"failures":            {layout(templates.SectionFailures, "/failures"), failureList()},
		"failures-resolved":   {dark(layout(templates.SectionFailures, "/failures?show=resolved")), templates.Failures{Show: "resolved", Open: 3, Self: "/ops/failures?show=resolved"}},
		"failures-settled":    {layout(templates.SectionFailures, "/failures"), templates.Failures{Show: "open", Resolved: 1, Self: "/ops/failures", JustResolved: new(failing()[0])}},
		"failures-mine":       {signedIn(layout(templates.SectionFailures, "/failures?assignee=bob")), templates.Failures{Groups: failing()[:1], Show: "open", Assignee: "bob", Open: 1, Self: "/ops/failures?assignee=bob"}},
		"failure-mine":        {signedIn(layout(templates.SectionFailures, "/failures/0dd7dc58725190cd")), failureGroup()},
		"failures-none":       {layout(templates.SectionFailures, "/failures"), templates.Failures{Show: "open", Self: "/ops/failures"}},
		"failures-unreadable": {layout(templates.SectionFailures, "/failures"), templates.Failures{Show: "open", Self: "/ops/failures", Unreadable: true}},
		"failure":             {layout(templates.SectionFailures, "/failures/0dd7dc58725190cd"), failureGroup()},
		"failure-hostile":     {layout(templates.SectionFailures, "/failures/1111111111111111"), failureHostile()},
		"tasks-parameter":     {layout(templates.SectionTasks, ""), tasksWrongParam()},
		"views":               {layout(templates.SectionTasks, ""), savedViews()},
		"views-none":          {layout(templates.SectionTasks, ""), templates.Views{}},
		"view-delete":         {layout(templates.SectionTasks, ""), templates.DeleteView{View: savedViews().Views[1]}},
		"settings":            {layout(templates.SectionSettings, "/settings"), settings()},
		"settings-memory":     {layout(templates.SectionSettings, "/settings"), templates.Settings{Location: ":memory:", Plan: &templates.Plan{}}},
		"settings-restoring":  {restoring(layout(templates.SectionSettings, "/settings")), templates.Settings{Location: ":memory:", Plan: &templates.Plan{}}},
		"settings-broken":     {historyDown(down(layout(templates.SectionSettings, "/settings"))), settingsBroken()},
		"not-found": {layout("", ""), templates.Problem{
			Title: "Unknown worker", Message: "No event of worker x has been seen.",
			Back: "/ops/workers", BackText: "All workers",
			Similar: []templates.Link{{Text: "celery@a", Href: "/ops/workers/celery@a"}, {Text: "celery@b", Href: "/ops/workers/celery@b"}},
		}},
		"failed": {layout("", ""), templates.Problem{Title: "Something went wrong", Message: "This page could not be made.", RequestID: "4f2c"}},
	}
	maps.Copy(all, flowScenes())
	maps.Copy(all, aboutScenes())
	maps.Copy(all, workerScenes())
	maps.Copy(all, typeScenes())
	maps.Copy(all, idempotencyScenes())
	maps.Copy(all, taskActScenes())
	maps.Copy(all, outboxScenes())
	maps.Copy(all, appOutboxScenes())
	maps.Copy(all, queueScenes())
	maps.Copy(all, gapScenes())
	maps.Copy(all, duplicateScenes())
	maps.Copy(all, lockScenes())
	maps.Copy(all, alertScenes())
	maps.Copy(all, workflowScenes())
	maps.Copy(all, scheduleScenes())
	maps.Copy(all, compareScenes())
	maps.Copy(all, diagramScenes())
	maps.Copy(all, signInScenes())
	maps.Copy(all, clusterScenes())
	return all
}

func layout(section templates.Section, topic string) templates.Layout {
	return templates.Layout{
		Title: "A page", Section: section, Topic: topic, Path: "/ops/", Version: "v0.1.0", Health: connected(),
	}
}

func signedIn(c templates.Layout) templates.Layout {
	c.User = templates.User{Name: "ann", Role: "operator", Payload: true}
	return c
}

func dark(c templates.Layout) templates.Layout {
	c.Theme = "dark"
	return c
}

func down(c templates.Layout) templates.Layout {
	c.Health = lost()
	return c
}

// starting is the layout while history is read.
func starting(c templates.Layout) templates.Layout {
	c.Health = view.Health{Broker: view.BrokerHealth{URL: lost().Broker.URL}}
	return c
}

// restoring is the layout while older tasks are loaded.
func restoring(c templates.Layout) templates.Layout {
	c.Health = connected()
	c.Health.Restoring = true
	return c
}

func connected() view.Health {
	return view.Health{Ready: true, Broker: view.BrokerHealth{
		URL: "amqp://umbel:***@rabbit:5672/prod", Connected: true, Since: at(-3600 * second), LastEventAt: at(0),
	}}
}

func lost() view.Health {
	return view.Health{Ready: true, Broker: view.BrokerHealth{
		URL: "amqp://umbel:***@rabbit:5672/prod", Since: at(-20 * second), LastEventAt: at(-21 * second),
		LastError: "dial tcp 10.0.3.7:5672: connect: connection refused", NextAttemptAt: at(8 * second), Attempts: 4,
	}}
}

func overview() templates.Overview {
	health := connected()
	health.Messages, health.Events, health.Rejected = 18_234, 2_043_310, map[string]uint64{"malformed": 12, "clock": 1}
	return templates.Overview{
		Chart: chart(), Health: health, Backlog: new(int64(1_204)),
		Rates: view.Rates{
			Received: 118.25, Succeeded: 112.4, Failed: 1.5, Retried: 0.04,
			Series: view.Series{
				Received: []float64{110, 120, 118}, Succeeded: []float64{100, 110, 112}, Failed: []float64{0, 2, 1}, Retried: []float64{0, 0, 1},
			},
		},
		Counts: state.Counts{
			Tasks:   1_204_331,
			ByState: map[state.State]int{state.Success: 1_204_000, state.Failure: 300, state.Started: 30, "PROGRESS": 1},
			ByName:  map[string]int{"billing.tasks.charge": 1_000_000, "mail.deliver": 204_331, "cleanup": 0},
			ByQueue: map[string]int{"celery": 12},
			Workers: map[state.Status]int{state.Online: 1, state.Late: 1, state.Offline: 1, state.Stopping: 1},
			Evicted: 12, Orphaned: 3,
		},
		Workers:          knownWorkers(),
		Failing:          failing(),
		FailuresReadable: true,
		Failures:         []state.Task{retried(), hostile()},
	}
}

func overviewDown() templates.Overview {
	v := overview()
	v.Counts.ByQueue = nil
	v.Failing, v.FailuresReadable = nil, false
	v.Health = lost()
	v.Health.Messages, v.Health.Events, v.Health.Rejected = 1, 1, map[string]uint64{"clock": 1}
	return v
}

func tasks() templates.Tasks {
	return templates.Tasks{
		Chart: chartOfTimes(),
		Tasks: []state.Task{sent(), orphaned(), retried(), repeating(), hostile()},
		Total: history.Count{N: 10_000},
		Query: templates.TaskQuery{Clear: "/ops/tasks"},
		Views: []templates.ViewTab{
			{Name: "All", Href: "/ops/tasks", Current: true},
			{Name: "Failing now", Href: "/ops/tasks?q=state%3Afailure", Count: &history.Count{N: 12, Exact: true}},
		},
		States: []templates.StateChoice{
			{State: state.Success, Count: history.Count{N: 1_204_000, Exact: true}, Href: "/ops/tasks?q=state%3Asuccess"},
			{State: state.Failure, Count: history.Count{N: 300}, Href: "/ops/tasks?q=state%3Afailure"},
			{State: "PROGRESS", Count: history.Count{N: 1, Exact: true}, Href: "/ops/tasks?q=state%3Aprogress"},
		},
		Facets: []templates.Facet{{ID: "name", Label: "Task", Values: []templates.FacetValue{
			{Text: "billing.tasks.charge", Count: history.Count{N: 1_000_000, Exact: true}, Href: "/ops/tasks?q=name%3Abilling.tasks.charge"},
			{Text: evil, Count: history.Count{N: 1, Exact: true}, Href: "/ops/tasks?q=name%3Ax"},
		}}},
		Columns: templates.ColumnMenu{
			Shown:  []templates.ColumnChoice{{ID: "state", Label: "State", Later: "/ops/tasks?cols=1", Off: "/ops/tasks?cols=2"}},
			Others: []templates.ColumnChoice{{ID: "eta", Label: "ETA", On: "/ops/tasks?cols=3"}},
		},
		Exports: []templates.Link{{Text: "CSV", Href: "/ops/api/v1/tasks/export?format=csv"}},
		Table: templates.Table{Sorts: map[string]templates.Sort{
			"run": {Href: "/ops/tasks?sort=-run"}, "updated": {Order: "descending"},
		}},
		Older: "/ops/tasks?cursor=abc",
	}
}

// tasksFiltered has columns of its own and is sorted.
func tasksFiltered() templates.Tasks {
	v := tasks()
	v.Query = templates.TaskQuery{
		Text: `"x" & <y> state:failure`, Filtered: true, Clear: "/ops/tasks?sort=run",
		Hidden: []templates.Param{{Name: "sort", Value: "run"}, {Name: "cols", Value: "id,exc"}},
	}
	v.Views[0].Current = false
	v.States[1].On = true
	v.Facets[0].Values[1].On = true
	v.Total = history.Count{N: 1, Exact: true}
	v.Sorted = "shortest “Run” first, those without it left out"
	v.Table = templates.Table{
		Columns: []string{
			"id", "finished", "exc", "result", "root", "parent", "eta", "expires", "exchange", "routing_key", "client", "clock", "run", "sent",
			"received", "started", "trace", "kwargs", "no such column",
		},
		Sorts: map[string]templates.Sort{"run": {Href: "/ops/tasks", Order: "ascending"}},
	}
	v.Columns.Reset = "/ops/tasks?sort=run"
	v.Newest, v.Newer = "/ops/tasks", "/ops/tasks?cursor=def"
	v.Selection = &templates.Selection{Query: v.Query.Text}
	return v
}

func tasksWrong() templates.Tasks {
	v := tasks()
	v.Older, v.Exports = "", nil
	v.Query = templates.TaskQuery{Text: "state:failure nane:<b>", Filtered: true, Clear: "/ops/tasks", Error: &templates.QueryError{
		Before: "state:failure ", Token: "nane", After: ":<b>", Message: "There is no field nane.",
		Correct: &templates.Link{Text: "name", Href: "/ops/tasks?q=state%3Afailure+name%3A%3Cb%3E"}, Shown: "state:failure",
	}}
	return v
}

func tasksWrongParam() templates.Tasks {
	return templates.Tasks{Query: templates.TaskQuery{Clear: "/ops/tasks", Error: &templates.QueryError{
		Param: "limit", Message: "must be a whole number from 1 to 500",
	}}}
}

func tasksSearching() templates.Tasks {
	return templates.Tasks{
		Query: templates.TaskQuery{Text: "x", Filtered: true, Clear: "/ops/tasks"}, Searched: 20_000, Total: history.Count{},
		Older: "/ops/tasks?cursor=abc&q=x",
	}
}

func tasksNone() templates.Tasks {
	return templates.Tasks{
		Total: history.Count{Exact: true}, Query: templates.TaskQuery{Text: "name:x worker:w", Filtered: true, Clear: "/ops/tasks"},
		Broader: []templates.BroaderQuery{
			{Condition: "worker:w", Href: "/ops/tasks?q=name%3Ax", Total: history.Count{N: 204, Exact: true}},
			{Condition: "name:x", Href: "/ops/tasks?q=worker%3Aw", Total: history.Count{N: 1, Exact: true}},
		},
	}
}

func savedViews() templates.Views {
	return templates.Views{Message: "A view needs a name.", Views: []templates.SavedView{
		{ID: "1", Name: "Everything", Href: "/ops/tasks"},
		{ID: "2", Name: evil, Query: "exc:" + evil, Href: "/ops/tasks?q=exc"},
	}}
}

func task() templates.Task {
	t := retried()
	name := "reports.build"
	return templates.Task{
		Task:    t,
		Alike:   &failing()[1],
		Repeats: new(duplicateOverlap().DuplicateGroup),
		Root:    &templates.RelatedTask{ID: "root-0001-0002", Name: &name, State: state.Success},
		Parent:  &templates.RelatedTask{ID: "parent-0001-0002"},
		Family: templates.Family{
			Waterfall: templates.NewWaterfall(new(order()), templates.WaterfallOptions{About: "body"}), Siblings: 40, SiblingsDrawn: 8, Children: 21, ChildrenDrawn: 20,
		},
		Events: []state.TaskEvent{
			{Type: "task-sent", Hostname: "gen7@web", Clock: 4, Stamp: clock.Stamp{Clock: 918, Micros: t.SentAt, Origin: "gen7@web"}},
			{Type: "task-received", Hostname: "celery@a", PID: 41, Clock: 920, Stamp: clock.Stamp{Clock: 920, Micros: t.SentAt + second, Origin: "celery@a.41"}},
			{Type: "task-progress", Hostname: "celery@a", PID: 41, Stamp: clock.Stamp{Clock: 921, Micros: t.SentAt + second, Origin: "celery@a.41"}},
		},
	}
}

func sent() state.Task {
	return state.Task{
		ID: "7d1e6a52-0000-4000-8000-000000000001", Name: new("mail.deliver"), State: state.Pending,
		Args: new("()"), Kwargs: new("{'to': 'a@example.org'}"), Client: new("gen7@web"), Queue: new("mail"),
		Retries: new(int64(0)), ETA: new("2026-11-21T13:00:00+00:00"), Expires: new("2026-11-22T13:00:00+00:00"),
		SentAt: noon, UpdatedAt: noon, Stamp: clock.Stamp{Clock: 12, Micros: noon},
	}
}

func succeeded() state.Task {
	t := sent()
	t.ID, t.State, t.Result, t.Worker = "7d1e6a52-0000-4000-8000-000000000002", state.Success, new("True"), new("celery@a")
	t.ReceivedAt, t.StartedAt, t.SucceededAt, t.UpdatedAt = noon+second, noon+2*second, noon+5*second, noon+5*second
	t.WaitSeconds, t.RuntimeSeconds = new(2.0), new(2.998)
	t.Executions = []state.Execution{{
		Worker: "celery@a", PID: 41, State: state.Success, RuntimeSeconds: t.RuntimeSeconds, Result: t.Result,
		Times: state.Times{ReceivedAt: t.ReceivedAt, StartedAt: t.StartedAt, SucceededAt: t.SucceededAt},
	}}
	return t
}

// repeating is succeeded that ran while another task of its call did.
func repeating() state.Task {
	t := succeeded()
	t.CallID, t.Duplicates = duplicateOverlap().Key.Call, state.Overlapping|state.Rerun
	return t
}

func orphaned() state.Task {
	t := sent()
	t.ID, t.State, t.Worker = "7d1e6a52-0000-4000-8000-000000000003", state.Started, new("celery@c")
	t.ReceivedAt, t.StartedAt = noon+second, noon+2*second
	t.Orphaned, t.OrphanReason = true, "its worker process has restarted"
	t.Executions = []state.Execution{{
		Worker: "celery@c", State: state.Started,
		Times: state.Times{ReceivedAt: t.ReceivedAt, StartedAt: t.StartedAt},
	}}
	return t
}

// returned was received by a worker that shut down before it started it.
func returned() state.Task {
	t := sent()
	t.ID, t.State, t.Worker, t.ReceivedAt = "7d1e6a52-0000-4000-8000-000000000005", state.Received, new("celery@c"), noon+second
	t.Returned, t.OrphanReason = true, "its worker is offline"
	t.Executions = []state.Execution{{Worker: "celery@c", State: state.Received, Times: state.Times{ReceivedAt: t.ReceivedAt}}}
	return t
}

// replaced ran as another task first.
func replaced() state.Task {
	t := succeeded()
	t.ID = "7d1e6a52-0000-4000-8000-000000000006"
	t.Executions[0].Name = t.Name
	t.Executions[0].ReceivedAt, t.Executions[0].StartedAt = noon+4*second, noon+4*second
	t.ReceivedAt, t.StartedAt = noon+4*second, noon+4*second
	t.Executions = append([]state.Execution{{
		Worker: "celery@a", PID: 41, State: state.Started, Replaced: true, Name: new("billing.choose"),
		Times: state.Times{ReceivedAt: noon + second, StartedAt: noon + 2*second},
	}}, t.Executions...)
	return t
}

func revoked(why state.Revocation) state.Task {
	t := returned()
	t.State, t.Returned, t.OrphanReason, t.RevokedAt = state.Revoked, false, "", noon+3*second
	t.Revocation = &why
	t.Executions[0].State, t.Executions[0].Times, t.Executions[0].Revocation = t.State, t.Times, t.Revocation
	return t
}

// retried failed at its second attempt, which was received twice.
func retried() state.Task {
	t := sent()
	t.ID, t.State, t.Worker = "7d1e6a52-0000-4000-8000-000000000004", state.Failure, new("celery@b")
	t.Args, t.Kwargs = new("(1, 'cus_7f...')"), new("{}")
	t.RootID, t.ParentID = new("root-0001-0002"), new("parent-0001-0002")
	t.Children = []string{"child-0001-0002", "child-0003-0004", "child-0005-0006"}
	t.Exception, t.Traceback = new("ValueError('no <b>')"), new("Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: no <b>")
	t.Retries, t.Redelivered, t.Truncated = new(int64(1)), true, true
	t.ReceivedAt, t.StartedAt, t.FailedAt, t.RetriedAt = noon+9*second, noon+9*second, noon+10*second, noon+4*second
	t.Executions = []state.Execution{
		{
			Worker: "celery@a", PID: 41, State: state.Retry, Exception: new("TimeoutError()"), Traceback: new("Traceback"),
			Times: state.Times{ReceivedAt: noon + second, StartedAt: noon + 2*second, RetriedAt: noon + 4*second},
		},
		{
			Attempt: 1, Worker: "celery@a", PID: 41, State: state.Received,
			Times: state.Times{ReceivedAt: noon + 6*second},
		},
		{
			Attempt: 1, Worker: "celery@b", State: state.Failure, Inferred: true, Exception: t.Exception, Traceback: t.Traceback,
			Times: state.Times{StartedAt: noon + 9*second, FailedAt: noon + 10*second},
		},
	}
	return t
}

// evil tries to leave every place it may be put into.
const evil = `"><script>alert(1)</script><img src=x onerror=alert(1)>' onmouseover='alert(1)' javascript:alert(1) style=x %2F/../</pre></textarea>`

func hostile() state.Task {
	t := retried()
	t.ID, t.Name, t.State, t.Worker, t.Client = evil, new(evil), state.State(strings.ToUpper(evil)), new(evil), new(evil)
	t.Args, t.Kwargs, t.Result = new(evil+strings.Repeat("A", 1<<20)), new(evil), new(evil)
	t.Exception, t.Traceback, t.Queue, t.Exchange, t.RoutingKey = new(evil), new(evil), new(evil), new(evil), new(evil)
	t.ETA, t.Expires, t.RootID, t.ParentID, t.Children = new(evil), new(evil), new(evil), new(evil), []string{evil}
	t.OrphanReason, t.Orphaned = evil, true
	t.Executions[0].Worker, t.Executions[0].State = evil, t.State
	t.Executions[0].Exception, t.Executions[0].Traceback = new(evil), new(strings.Repeat("é", 20_000))
	return t
}

func knownWorkers() []state.Worker {
	return []state.Worker{
		{
			Name: "celery@a", PID: 41, Status: state.Online, LastHeartbeatAt: noon, FreqSeconds: 2, Active: new(int64(3)),
			Processed: new(int64(12_345)), Load: &[3]float64{0.4, 1.25, 12}, Software: new("py-celery"), Version: new("5.7.0"),
			System: new("Linux"), Restarts: 2, Clock: 918, ClockOffsetMicros: new(int64(2_000)), RunningTasks: 4, Extra: map[string]string{"b": "1", "a": `"<x>"`},
		},
		{Name: "celery@b", Status: state.Late, LastHeartbeatAt: noon - 14*second, Version: new("5.6.3"), RunningTasks: 1, ClockOffsetMicros: new(int64(-3_599_990_000))},
		{Name: "celery@c", Status: state.Offline},
		{Name: evil, Status: state.Stopping},
	}
}
