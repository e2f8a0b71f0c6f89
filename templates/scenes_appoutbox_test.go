package templates_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

func appOutboxScenes() map[string]scene {
	page := func() templates.Layout {
		l := layout(templates.SectionOutbox, "/outbox/app")
		l.AppOutboxes = []templates.AppOutboxAlert{}
		return l
	}
	stopped := dark(page())
	stopped.AppOutboxes = append(stopped.AppOutboxes, templates.AppOutboxAlert{Name: "shop", Ready: exactly(1), IdleSince: at(second)})
	away := appOutbox()
	away.Outbox.Err = &outboxwatch.Error{
		Fault: outboxwatch.FaultAway, Text: "The database postgresql://u:xxxxx@db/shop cannot be reached.", Err: errors.New("connection refused" + evil),
	}
	unread := templates.AppOutbox{Outbox: outboxwatch.Outbox{Name: "shop", URL: "sqlite:////a.db"}, Tabs: appTabs(), States: appStates(), Chart: templates.Chart{Title: "Waiting tasks", Off: true, Toggle: templates.Link{Text: "Show", Href: "/ops/outbox/app"}}}
	filtered := appOutbox()
	filtered.Rows, filtered.Name, filtered.Several, filtered.Searched, filtered.Older = nil, evil, true, outboxwatch.Window, "/ops/outbox/app?cursor=~1"
	return map[string]scene{
		"app-outbox":          {page(), appOutbox()},
		"app-outbox-stopped":  {stopped, appOutbox()},
		"app-outbox-away":     {page(), away},
		"app-outbox-unread":   {page(), unread},
		"app-outbox-filtered": {page(), filtered},
		"app-outbox-dead":     {page(), appDead()},
		"app-outbox-readonly": {page(), appReadOnly()},
		"app-outbox-acts":     {page(), appChangeable()},
		"tasks-outbox":        {layout(templates.SectionTasks, "/tasks"), outboxTasks()},
		"task-outbox":         {layout(templates.SectionTasks, "/tasks/o"), outboxTask(outboxwatch.Stage(outboxwatch.Stale))},
		"task-outbox-dead":    {dark(layout(templates.SectionTasks, "/tasks/o")), outboxTask(outboxwatch.Dead)},
		"task-outbox-sent":    {layout(templates.SectionTasks, "/tasks/o"), outboxTask(outboxwatch.Sent)},
	}
}

func exactly(n int) history.Count { return history.Count{N: n, Exact: true} }

func appTabs() []templates.Choice {
	return []templates.Choice{{Text: "Umbel’s commands", Href: "/ops/outbox"}, {Text: "Application outbox", Href: "/ops/outbox/app", Current: true}}
}

func appStates() []templates.AppState {
	list := []templates.AppState{{Label: "All", Href: "/ops/outbox/app", Count: exactly(8), Current: true}}
	for _, s := range outboxwatch.States() {
		list = append(list, templates.AppState{Label: templates.AppStateWord(s), Href: "/ops/outbox/app?state=" + string(s), Count: history.Count{N: 100_000}})
	}
	return append(list, templates.AppState{Label: "Dead letters", Href: "/ops/outbox/app/dead", Count: exactly(2)})
}

// appStats has rows in every state, and a relay that has stopped.
func appStats() outboxwatch.Outbox {
	return outboxwatch.Outbox{
		Name: "shop", URL: "postgresql://umbel:xxxxx@db/shop", ReadAt: at(60 * second), Relay: outboxwatch.Relay{Stopped: true, IdleSince: at(second)},
		Stats: outboxwatch.Stats{
			Now: at(600 * second), OldestReady: at(second), LastTaken: at(2 * second), DeadLetters: exactly(2), Retries: exactly(7), Server: "PostgreSQL 15.18",
			States: map[outboxwatch.State]outboxwatch.Count{
				outboxwatch.Pending: {N: 100_000}, outboxwatch.InFlight: exactly(1), outboxwatch.Deferred: exactly(1), outboxwatch.OtherSchema: exactly(3),
			},
			TopFailing: []outboxwatch.NameCount{{Name: "shop.charge", N: 5}, {Name: evil, N: 2}},
			Reasons:    []outboxwatch.NameCount{{Name: "max retries exceeded", N: 2}, {N: 1}},
			DeadNames:  []outboxwatch.NameCount{{Name: "shop.charge", N: 2}},
		},
	}
}

func appOutbox() templates.AppOutbox {
	v := templates.AppOutbox{Outbox: appStats(), Tabs: appTabs(), States: appStates(), Chart: templates.Chart{Title: "Waiting tasks", Off: true, Toggle: templates.Link{Text: "Show", Href: "/ops/outbox/app"}}}
	payload := outboxwatch.Payload{Args: json.RawMessage(`[7]`), Kwargs: json.RawMessage(`{"card":"***"}`), Options: json.RawMessage(`{"queue":"mail"}`), RedactedKwargs: true}
	for i, s := range outboxwatch.States() {
		v.Rows = append(v.Rows, outboxwatch.Row{
			ID: int64(i + 1), TaskID: retried().ID, TaskName: "shop.charge", State: s, CreatedAt: at(0), UpdatedAt: at(second), RetryAfter: at(9 * second),
			Retries: i, SchemaVersion: 2, Payload: payload,
		})
	}
	v.Rows = append(v.Rows, outboxwatch.Row{
		ID: 8, TaskID: evil, TaskName: evil, State: outboxwatch.Due, CreatedAt: at(0), UpdatedAt: at(2 * second), RetryAfter: at(second),
		Payload: outboxwatch.Payload{ArgsSize: 2_000_000, Kwargs: json.RawMessage(strings.Repeat(" ", 500) + `{}`)},
	})
	v.Chart = templates.Chart{
		Title: "Waiting tasks", Step: time.Minute, Toggle: templates.Link{Text: "Hide", Href: "/ops/outbox/app?chart=off"},
		Columns: []templates.ChartColumn{{Name: "waiting", Color: "--started"}},
		Rows:    []templates.ChartRow{{At: 60_000_000, Cells: []*float64{nil}, Unfinished: true}, {At: 0, Cells: []*float64{new(12.0)}}},
	}
	return v
}

func appDead() templates.AppOutbox {
	v := appOutbox()
	v.Dead, v.Rows = true, nil
	v.Outbox.Stats.MissingGrants = []string{`GRANT INSERT ON "celery_outbox" TO "reader"`, `GRANT DELETE ON "celery_outbox_dead_letter" TO "reader"`}
	v.DeadLetters = []outboxwatch.DeadLetter{
		{ID: 2, TaskID: retried().ID, TaskName: "shop.charge", CreatedAt: at(0), DeadAt: at(second), Retries: 5, Reason: "max retries exceeded", Payload: outboxwatch.Payload{Args: json.RawMessage(`[7]`), Kwargs: json.RawMessage(`{}`)}},
		{ID: 1, TaskID: evil, TaskName: evil, Reason: evil},
		{ID: 3},
	}
	return v
}

// appChangeable has dead letters that people may change, of one task name.
func appChangeable() templates.AppOutbox {
	v := appDead()
	v.Name, v.Outbox.Stats.MissingGrants = "shop.*", nil
	return v
}

func appReadOnly() templates.AppOutbox {
	v := appDead()
	v.DeadLetters, v.Outbox.Stats.ReadOnly = nil, "The database is a standby, which accepts no changes."
	return v
}

// outboxTask is a task of which only an application's outbox tells.
func outboxTask(stage outboxwatch.Stage) templates.Task {
	o := &templates.TaskOutbox{Trace: outboxwatch.Trace{
		Outbox: "shop", TaskID: "o", TaskName: "shop.charge", Stage: stage, CommittedAt: at(0),
		Claims: []time.Time{at(second), at(2 * second)}, Resent: true,
	}, Attention: outboxwatch.Attention{Resent: true}}
	switch stage {
	case outboxwatch.Dead:
		o.Claims, o.Resent, o.Attention.Resent, o.Retries, o.RetryAfter, o.DeadAt, o.Reason = nil, false, false, 5, at(second), at(3*second), evil
	case outboxwatch.Sent:
		o.SentBy, o.Attention.Unreceived = at(3*second), true
	default:
		o.Attention.Unsent = true
	}
	return templates.Task{Task: state.Task{ID: "o", Name: &o.TaskName, State: state.Pending}, Outbox: o}
}

// outboxTasks is a list whose tasks need attention in an application's outbox.
func outboxTasks() templates.Tasks {
	v := templates.Tasks{Chart: chartOff(), Total: exactly(3), Table: templates.Table{Outbox: make(map[string]*templates.TaskOutbox)}}
	for i, why := range []outboxwatch.Attention{{Unsent: true}, {Unreceived: true}, {Resent: true}} {
		t := outboxTask(outboxwatch.Sent)
		t.Outbox.Attention = why
		t.Task.ID = fmt.Sprint("o", i)
		v.Tasks = append(v.Tasks, t.Task)
		v.Table.Outbox[t.Task.ID] = t.Outbox
	}
	return v
}
