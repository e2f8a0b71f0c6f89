package templates_test

import (
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	found "github.com/umbelhq/umbel/monitor/idempotency/audit"
	rules "github.com/umbelhq/umbel/monitor/idempotency/settings"
	"github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
)

func idempotencyScenes() map[string]scene {
	at := layout(templates.SectionWorkers, templates.IdempotencyPath)
	return map[string]scene{
		"idempotency":         {at, audited()},
		"idempotency-none":    {at, templates.Idempotency{Online: 3, All: true, Report: found.Report{Report: rules.Report{Workers: 3, Tasks: []rules.TaskRow{{Name: "a"}}}}}},
		"idempotency-waiting": {at, templates.Idempotency{Online: 3, Report: found.Report{Waiting: 3}}},
		"idempotency-offline": {down(at), templates.Idempotency{Find: evil}},
	}
}

// audited has a finding of each severity, and values that are hostile.
func audited() templates.Idempotency {
	redelivered := query.New(query.Equal(query.Is, "redelivered"))
	cell := func(values ...string) rules.Cell {
		var c rules.Cell
		for i, v := range values {
			c.Values = append(c.Values, rules.Value{Value: v, Workers: []string{fmt.Sprint("celery@", i), "celery@b"}})
		}
		return c
	}
	own := cell("True")
	own.Overrides = true
	var many []rules.TaskFact
	var names []string
	for i := range 120 {
		many = append(many, rules.TaskFact{Name: fmt.Sprintf("app.task%03d", i)})
		names = append(names, fmt.Sprintf("celery@w%03d", i))
	}
	tasks := []rules.TaskRow{
		{
			Name: "billing.charge", Observed: rules.Observed{Runs: 10, P99: 40 * time.Second, Delay: time.Hour},
			Cells: []rules.Cell{own, cell("False", "True"), {}, cell("True"), cell("True"), cell("False"), cell("1m"), cell("json")},
		},
		{Name: evil, Cells: []rules.Cell{cell(evil), cell(evil, "x"), {}, {}, {}, {}, {}, {}}},
	}
	return templates.Idempotency{
		Online: 122, Find: evil, All: true, Tasks: tasks, Total: 900,
		Report: found.Report{
			Waiting: 1, Partial: []string{"Run times could not be read: it took too long."},
			Report: rules.Report{Workers: 121, Tasks: tasks, Unknown: []rules.Unknown{
				{Why: "No reply.", Workers: names}, {Why: evil, Workers: []string{evil}},
			}},
			Findings: []found.Finding{
				{
					Finding: rules.Finding{
						Cause: "visibility-run-time", Effect: rules.Twice, Title: "Runs outlast the visibility timeout", Consequence: "A second run starts.",
						Setting: "broker_transport_options", Value: "{'visibility_timeout': 120}", Cost: "Lost tasks come back later.",
						Tasks: []rules.TaskFact{{Name: "billing.charge", Detail: "p99 of run times 40s, longest 50s, timeout 30s"}}, Workers: []string{"celery@a", evil},
					},
					Severity: found.Happened, Total: history.Count{N: 1, Exact: true},
					Queries: []found.Query{{Query: redelivered, Names: 1, Total: history.Count{N: 1, Exact: true}}},
				},
				{
					Finding: rules.Finding{
						Cause: "early-acknowledgement", Effect: rules.Lost, Title: "Messages are acknowledged before the task runs", Consequence: "It is lost.",
						Setting: "task_acks_late", Value: "True", Cost: "A task can run twice.", Tasks: many, Workers: names,
					},
					Severity: found.Exceeded, Total: history.Count{N: 10_007},
					Queries: []found.Query{{Query: redelivered, Names: 60, Total: history.Count{N: 10_000}}, {Query: redelivered, Names: 60, Total: history.Count{N: 7, Exact: true}}},
				},
				{
					Finding: rules.Finding{
						Cause: "differs-task-serializer", Effect: rules.Other, Title: "Workers differ in task_serializer", Consequence: evil, Setting: "task_serializer", Cost: evil,
						Workers: []string{"a", "b"}, Values: []rules.Value{{Value: "'json'", Workers: []string{"a"}}, {Value: evil, Workers: []string{evil}}},
					},
					Severity: found.Possible,
				},
			},
		},
	}
}
