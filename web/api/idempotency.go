package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/idempotency/audit"
	"github.com/umbelhq/umbel/monitor/idempotency/settings"
	"github.com/umbelhq/umbel/web/auth"
)

// IdempotencyAudit says where the settings of workers let tasks be lost or run twice.
type IdempotencyAudit struct {
	At       Time          `json:"at"`
	Workers  Int           `json:"workers" doc:"Number of workers that were asked for their settings."`
	Waiting  Int           `json:"waiting" doc:"Number of online workers that have not been asked yet."`
	Findings []Finding     `json:"findings" doc:"Worst first."`
	Unknown  []UnknownPart `json:"unknown" doc:"What could not be judged. No default is assumed for it."`
	Partial  []string      `json:"partial" doc:"What could not be read of the history, as sentences."`
	Tasks    []AuditedTask `json:"tasks" doc:"The settings of all registered tasks, by name."`
}

// Finding is one cause with all workers and tasks that it concerns.
type Finding struct {
	Cause       string       `json:"cause" example:"visibility-run-time"`
	Severity    string       `json:"severity" enum:"happened,exceeded,possible" doc:"Whether the history has tasks to which it happened, run times or ETAs are beyond what the settings allow for, or the settings allow it."`
	Effect      string       `json:"effect" enum:"lost,twice,other" doc:"What can happen to a task."`
	Title       string       `json:"title"`
	Consequence string       `json:"consequence"`
	Setting     string       `json:"setting" doc:"Setting that changes it." example:"broker_transport_options"`
	Value       *string      `json:"value" doc:"Value to set, in Python; null if that depends." example:"{'visibility_timeout': 7200}"`
	Cost        string       `json:"cost" doc:"What the change costs."`
	Tasks       []AuditFact  `json:"tasks"`
	Workers     []string     `json:"workers"`
	Values      []AuditValue `json:"values" doc:"Which workers have which value, of a setting in which they differ."`
	Total       *Int         `json:"total" doc:"Number of tasks to which it happened; null if the history cannot tell, or total_at_least is set."`
	AtLeast     *Int         `json:"total_at_least"`
	Queries     []AuditQuery `json:"queries" doc:"Queries that find these tasks."`
}

// AuditFact is a task that a finding concerns.
type AuditFact struct {
	Name   string  `json:"name"`
	Detail *string `json:"detail" example:"p99 of run times 40s, longest 1m30s, timeout 1m"`
}

// AuditValue is a value with the workers that have it.
type AuditValue struct {
	Value   string   `json:"value" doc:"In Python."`
	Workers []string `json:"workers"`
}

// AuditQuery finds some of the tasks to which a finding happened.
type AuditQuery struct {
	Query   string `json:"q"`
	Total   *Int   `json:"total"`
	AtLeast *Int   `json:"total_at_least"`
}

// UnknownPart is something that workers did not report.
type UnknownPart struct {
	Why     string   `json:"why"`
	Workers []string `json:"workers"`
}

// AuditedTask is a task with its settings on all workers that have registered it.
type AuditedTask struct {
	Name     string                  `json:"name"`
	P99      *float64                `json:"p99_seconds" doc:"99th percentile of the run times of the last 7 days."`
	Longest  *float64                `json:"longest_seconds" doc:"Longest run time of the last 7 days."`
	ETA      *float64                `json:"longest_eta_seconds" doc:"Longest time from when a worker received a task until its ETA."`
	Settings map[string][]AuditValue `json:"settings" doc:"By name of the task attribute; empty if unknown."`
	Own      []string                `json:"overrides" doc:"Attributes that the class of the task sets itself."`
}

// registerIdempotency adds the operation that audits settings.
func (a *api) registerIdempotency(h huma.API) {
	if a.settings == nil {
		return
	}
	huma.Register(h, operation(h, auth.View, "audit-idempotency", "/idempotency/audit", "Audit the settings of workers"), a.auditSettings)
}

func (a *api) auditSettings(ctx context.Context, _ *struct{}) (*response[IdempotencyAudit], error) {
	ctx, cancel := context.WithTimeout(ctx, 2*readTimeout)
	defer cancel()
	return &response[IdempotencyAudit]{fromSettingsAudit(a.settings(ctx))}, nil
}

// newAudit audits what workers have reported so far.
func (a *api) newAudit(ctx context.Context) audit.Report {
	return audit.Read(ctx, audit.Options{
		Tasks: a.backend, Rollups: a.backend.History(), Settings: a.commands.Inspector.CachedSettings, Now: a.now(),
	})
}

func fromSettingsAudit(r audit.Report) IdempotencyAudit {
	return IdempotencyAudit{
		At: timeOf(r.At), Workers: Int(r.Workers), Waiting: Int(r.Waiting), Partial: append([]string{}, r.Partial...),
		Findings: mapSlice(r.Findings, fromFinding),
		Unknown:  mapSlice(r.Unknown, func(u settings.Unknown) UnknownPart { return UnknownPart(u) }),
		Tasks:    mapSlice(r.Tasks, fromTaskRow),
	}
}

func fromFinding(f audit.Finding) Finding {
	d := Finding{
		Cause: f.Cause, Severity: string(f.Severity), Effect: string(f.Effect), Title: f.Title, Consequence: f.Consequence,
		Setting: f.Setting, Value: text(f.Value), Cost: f.Cost, Workers: f.Workers, Values: mapSlice(f.Values, fromValue),
		Tasks: mapSlice(f.Tasks, func(t settings.TaskFact) AuditFact { return AuditFact{t.Name, text(t.Detail)} }),
		Queries: mapSlice(f.Queries, func(q audit.Query) AuditQuery {
			d := AuditQuery{Query: q.Query.String()}
			d.Total, d.AtLeast = counts(q.Total)
			return d
		}),
	}
	if len(f.Queries) > 0 {
		d.Total, d.AtLeast = counts(f.Total)
	}
	return d
}

func fromValue(v settings.Value) AuditValue { return AuditValue(v) }

// counts returns a count as its exact number or a lower bound.
func counts(c history.Count) (total, atLeast *Int) {
	if c.Exact {
		return new(Int(c.N)), nil
	}
	return nil, new(Int(c.N))
}

func fromTaskRow(t settings.TaskRow) AuditedTask {
	d := AuditedTask{Name: t.Name, Settings: map[string][]AuditValue{}, Own: []string{}}
	seconds := func(v time.Duration, known bool) *float64 {
		if !known {
			return nil
		}
		return new(v.Seconds())
	}
	o := t.Observed
	d.P99, d.Longest, d.ETA = seconds(o.P99, o.Runs > 0), seconds(o.Longest, o.Runs > 0), seconds(o.Delay, o.Delay > 0)
	for i, name := range settings.Columns() {
		d.Settings[name] = mapSlice(t.Cells[i].Values, fromValue)
		if t.Cells[i].Overrides {
			d.Own = append(d.Own, name)
		}
	}
	return d
}
