package templates_test

import (
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/causality"
	"github.com/umbelhq/umbel/templates"
)

func taskActScenes() map[string]scene {
	at := layout(templates.SectionTasks, "/tasks/"+retried().ID)
	page := func(v templates.Task) scene { return scene{at, v} }
	form := func(v templates.Form) scene { return scene{layout(templates.SectionTasks, ""), v} }
	return map[string]scene{
		"task-acts":          page(taskActs()),
		"task-asking":        page(templates.Task{Task: succeeded(), Stored: &templates.StoredResult{Source: "redis://r/1", Loading: true}}),
		"task-unreachable":   page(templates.Task{Task: succeeded(), Stored: &templates.StoredResult{Source: "redis://r/1", Unreachable: true}}),
		"task-missing":       page(templates.Task{Task: succeeded(), Stored: &templates.StoredResult{Source: "redis://r/1", Missing: true, Expected: true}}),
		"task-stored-evil":   page(taskStoredEvil()),
		"preflight":          form(preflight()),
		"preflight-none":     form(preflightNone()),
		"tasks-select":       {layout(templates.SectionTasks, "/tasks"), tasksToSelect()},
		"publish":            form(publish()),
		"preflight-remedies": form(preflightRemedies()),
		"publish-previewed":  form(publishPreviewed()),
	}
}

func tasksToSelect() templates.Tasks {
	v := tasks()
	v.Selection = &templates.Selection{}
	return v
}

func taskActs() templates.Task {
	return templates.Task{
		Task: retried(),
		Actions: []templates.TaskAction{
			{Title: "Revoke", Icon: "ban", Why: "It has finished."},
			{Title: "Retry", Icon: "rotate-cw", Href: "/ops/act/task?action=retry&id=x"},
		},
		Retries: []templates.Retry{
			{RetriedTask: command.RetriedTask{ID: "9c1e6a52-0000-4000-8000-000000000009", At: at(second), By: "ann"}, State: state.Success},
			{RetriedTask: command.RetriedTask{ID: "8c1e6a52-0000-4000-8000-000000000008", At: at(0)}},
		},
		Commands: []history.Command{
			{ID: 9, RequestID: 9, Summary: "Retry task 3f2a", State: "done", Actor: "ann", CreatedAt: at(0)},
			{
				ID: 8, RequestID: 8, Summary: "Revoke task 3f2a", State: "no_reply", CreatedAt: at(-second), Expected: []string{"celery@a", "celery@b", "celery@c"},
				Replies: []history.Reply{{Node: "celery@a", Text: "tasks 3f2a flagged as revoked", OK: true}, {Node: "celery@b", Text: "no"}},
			},
			{ID: 7, RequestID: 7, Summary: "Publish mail.send", State: "dead", CreatedAt: at(-2 * second), LastError: "no such queue: mail"},
		},
		Effects: map[int64]command.Effect{8: {Text: "too late: it had ended", Grade: causality.Consistent}},
		Stored: &templates.StoredResult{
			Source: "redis://:***@redis:6379/1", Status: state.Success, Value: "{\n  \"n\": 1\n}", DoneAt: noon, NoZone: true,
			Disagrees: []string{"Events say FAILURE, the backend says SUCCESS."},
		},
	}
}

func taskStoredEvil() templates.Task {
	return templates.Task{
		Task:    hostile(),
		Actions: []templates.TaskAction{{Title: "Revoke", Icon: "ban", Href: "/ops/act/task?id=%22%3E"}},
		Retries: []templates.Retry{{RetriedTask: command.RetriedTask{ID: evil, At: at(0), By: evil}, State: evil}},
		Commands: []history.Command{{
			RequestID: 1, Summary: evil, State: "dead", Actor: evil, LastError: evil, Replies: []history.Reply{{Node: evil, Text: evil}},
		}},
		Stored: &templates.StoredResult{
			Source: evil, Status: evil, Unreadable: "opaque Python object " + evil, Exception: evil, Traceback: evil, Disagrees: []string{evil},
		},
	}
}

func preflight() templates.Form {
	return templates.Form{
		Section: templates.SectionTasks, Title: "Terminate all tasks that match", Path: "/act/task", Danger: true, Token: "T0",
		Crumbs: []templates.Link{{Text: "Tasks", Href: "/ops/tasks"}},
		Hidden: []templates.Param{{Name: "action", Value: "terminate"}, {Name: "q", Value: "state:started " + evil}},
		Fields: []templates.Input{{Name: "signal", Field: "signal", Label: "Signal", Kind: templates.InputChoice, Options: []string{"SIGTERM", "SIGKILL"}, Value: "SIGKILL"}},
		Change: "/ops/act/task?change=1",
		Preview: &templates.Preview{
			Preview: command.Preview{
				Summary: "Terminate 1,000 tasks with SIGKILL", Targets: []string{"celery@a", "celery@b"}, Confirm: "terminate 1000",
				Warnings: []command.Warning{{Message: "Their processes end at once.", Severe: true}},
			},
			Tasks: &templates.Preflight{
				Many: true, All: true, Query: "state:started " + evil, Cap: 1000,
				BulkPreview: command.BulkPreview{
					Matched: history.Count{N: 10_000}, Selected: 1000, States: map[state.State]int{state.Started: 990, "PROGRESS": 10},
					Blocked: []command.Blocked{
						{Reason: "already finished", N: 12, IDs: []string{retried().ID, evil}},
						{Reason: evil, N: 1},
					},
				},
			},
		},
	}
}

func preflightRemedies() templates.Form {
	v := preflightNone()
	v.Preview.Tasks = &templates.Preflight{
		Many: true, Remedies: &templates.Remedies{
			Path: "/act/task", Hidden: []templates.Param{{Name: "q", Value: evil}, {Name: "kwargs", Value: "{}"}}, Cap: "9", Args: evil, Kwargs: "{}",
		},
		BulkPreview: command.BulkPreview{Blocked: []command.Blocked{
			{Reason: "an argument is a Decimal", N: 264, IDs: []string{retried().ID}, Remedy: "Send these values encoded.", Objects: true, Typed: true},
			{Reason: "queue not known", N: 1, Remedy: "From now on: task_send_sent_event = True."},
		}},
	}
	return v
}

func preflightNone() templates.Form {
	return templates.Form{
		Section: templates.SectionTasks, Title: "Revoke this task", Path: "/act/task", NothingToDo: true,
		Crumbs: []templates.Link{{Text: "Tasks", Href: "/ops/tasks"}, {Text: "3f2a", Href: "/ops/tasks/3f2a"}},
		Preview: &templates.Preview{
			Preview: command.Preview{Summary: "Nothing to revoke"},
			Tasks: &templates.Preflight{BulkPreview: command.BulkPreview{
				Blocked: []command.Blocked{{Reason: "already finished", N: 1, IDs: []string{retried().ID}}},
			}},
		},
	}
}

func publish() templates.Form {
	return templates.Form{
		Section: templates.SectionTasks, Title: "Retry with changes", Button: "Publish", Path: "/act/publish", Long: true,
		Description: "Its arguments are not known in full: type them in.",
		Crumbs:      []templates.Link{{Text: "Tasks", Href: "/ops/tasks"}},
		Hidden:      []templates.Param{{Name: "retry_of", Value: evil}},
		Fields: []templates.Input{
			{Name: "name", Field: "name", Label: "Task", Required: true, Value: evil, Options: []string{"mail.send", evil}},
			{Name: "args", Field: "args", Label: "Arguments", Kind: templates.InputArea, Required: true, Value: "[\n  1\n]", Error: "args[0] must be text."},
			{Name: "kwargs", Field: "kwargs", Label: "Keyword arguments", Kind: templates.InputArea, Required: true, Hint: "Events say, perhaps cut short: " + evil},
			{Name: "countdown", Field: "countdown", Label: "Countdown", Kind: templates.InputNumber},
			{Name: "force", Field: "force", Label: "Send it all the same", Kind: templates.InputCheck, Value: "false", Hint: "A queue that nobody reads keeps it."},
		},
	}
}

func publishPreviewed() templates.Form {
	v := publish()
	v.Token = "T1"
	v.Fields[1].Error = ""
	v.Preview = &templates.Preview{
		Preview: command.Preview{Summary: "Run mail.send", Targets: []string{"queue mail"}}, Details: []templates.Param{{Name: "Arguments", Value: "[\n  1\n]"}},
	}
	return v
}
