package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/calls"
)

// DuplicateRule says which fields of the arguments of a task do not count.
type DuplicateRule struct {
	Name    string   `json:"name" doc:"Task name."`
	Exclude []string `json:"exclude" nullable:"false" doc:"Paths of arguments." example:"[\"request_id\", \"order.at\"]"`
	SavedAt Time     `json:"saved_at"`
	Actor   *string  `json:"actor" doc:"User who saved it."`
	Pending int      `json:"pending" doc:"Stored tasks to which the rule is yet to be applied."`
}

func fromDuplicateRule(r history.DuplicateRule) DuplicateRule {
	return DuplicateRule{
		Name: r.Name, Exclude: append([]string{}, r.Exclude...), SavedAt: timeOf(r.At), Actor: text(r.Actor), Pending: r.Pending,
	}
}

// ExcludeBody says which fields of a task to exclude.
type ExcludeBody struct {
	_ struct{} `additionalProperties:"false"`

	Name    string   `json:"name" minLength:"1" doc:"Task name." example:"billing.tasks.charge"`
	Exclude []string `json:"exclude" nullable:"false" maxItems:"100" doc:"Paths of arguments: request_id, order.at, lines[*].at, or [0] for the first positional one. They replace those excluded before; none compares all arguments again." example:"[\"request_id\"]"`
}

// Exclusion is what excluding fields groups, by the newest tasks of the name.
type Exclusion struct {
	Saved     bool            `json:"saved" doc:"Whether a rule was saved: false with dry_run, and if the fields were excluded already."`
	Tasks     int             `json:"tasks" doc:"Number of tasks that were compared, at most 2,000."`
	Complete  bool            `json:"complete" doc:"Whether these are all tasks of the name."`
	Ungrouped int             `json:"ungrouped" doc:"Those of them whose arguments are not known as a whole."`
	Before    ExclusionEffect `json:"before" doc:"Groups with the fields excluded so far."`
	After     ExclusionEffect `json:"after" doc:"Groups with the fields of the request."`
	Samples   []ExclusionSet  `json:"samples" nullable:"false" doc:"The largest groups after, at most 10."`
	Excluded  []string        `json:"excluded" nullable:"false" doc:"Fields excluded before this request."`
}

// ExclusionEffect counts groups of two tasks or more.
type ExclusionEffect struct {
	Groups  int `json:"groups"`
	Grouped int `json:"grouped" doc:"Tasks in them."`
}

// ExclusionSet is one group.
type ExclusionSet struct {
	Tasks   int      `json:"tasks"`
	TaskIDs []string `json:"task_ids" nullable:"false" doc:"The newest three."`
	Args    *string  `json:"args" doc:"What counts of the positional arguments, as JSON text."`
	Kwargs  *string  `json:"kwargs" doc:"What counts of the keyword arguments, as JSON text."`
}

type excludeInput struct {
	Origin
	DryRun bool `query:"dry_run" doc:"Return what the fields would group without saving anything."`
	Body   ExcludeBody
}

// registerExclude adds the operation that excludes fields.
func (a *api) registerExclude(h huma.API) {
	if a.service() == nil {
		return
	}
	op := postBody(h, auth.EditRule, "exclude-fields", "/exclude", "Exclude fields of a task when its calls are compared", unavailable)
	op.Description = "Tasks that differ in nothing but these fields count as duplicates. Repeating the request changes nothing."
	huma.Register(h, op, a.exclude)
}

func (a *api) exclude(ctx context.Context, in *excludeInput) (*response[Exclusion], error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r := command.DuplicateRuleRequest{Name: in.Body.Name, Exclude: in.Body.Exclude}
	p, err := a.service().PreviewDuplicateRule(ctx, r)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	body := a.fromExclusion(p)
	if !in.DryRun {
		if body.Saved, err = a.service().SaveDuplicateRule(ctx, a.caller(ctx, &in.Origin), r); err != nil {
			return nil, a.failed(ctx, err)
		}
	}
	return &response[Exclusion]{body}, nil
}

func (a *api) fromExclusion(p command.DuplicateRulePreview) Exclusion {
	return Exclusion{
		Tasks: p.Tasks, Complete: p.Complete, Ungrouped: p.Ungrouped, Before: ExclusionEffect(p.Before), After: ExclusionEffect(p.After),
		Excluded: append([]string{}, p.Current...),
		Samples: mapSlice(calls.OfSamples(a.redactor, p.Samples), func(s command.DuplicateRuleSample) ExclusionSet {
			return ExclusionSet{Tasks: s.Tasks, TaskIDs: append([]string{}, s.IDs...), Args: text(s.Args), Kwargs: text(s.Kwargs)}
		}),
	}
}
