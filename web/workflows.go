package web

import (
	"context"
	"errors"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/query"
)

// load lists workflows.
func (p *workflowPages) load(ctx context.Context, a address) (page, error) {
	path := p.urls.Prefix + templates.WorkflowsPath
	q, err := query.ParseWorkflows(a.query)
	if err != nil {
		return page{}, invalid(err, templates.Link{Text: "All workflows", Href: path})
	}
	found, err := p.backend.Workflows(ctx, q.Request())
	if err != nil {
		return page{}, err
	}
	v := templates.Workflows{
		Workflows: found.Workflows, Status: q.Status, Name: q.Name, All: query.Workflows{}.URL(path),
	}
	if v.Roots, err = p.roots(ctx, found.Workflows); err != nil {
		return page{}, err
	}
	first := q
	first.Before = 0
	for _, s := range append([]workflow.Status{""}, workflow.Statuses()...) {
		other := first
		other.Status = s
		v.Statuses = append(v.Statuses, templates.WorkflowChoice{Status: s, Href: other.URL(path)})
	}
	if q.Before != 0 {
		v.Newest = first.URL(path)
	}
	if found.Next != 0 {
		older := q
		older.Before = found.Next
		v.Older = older.URL(path)
	}
	return page{url: q.URL(templates.WorkflowsPath), title: "Workflows", section: templates.SectionWorkflows, view: v}, nil
}

// roots returns the root tasks of workflows by their ids, those that are known.
func (p *workflowPages) roots(ctx context.Context, list []history.WorkflowSummary) (map[string]state.Task, error) {
	roots := make(map[string]state.Task, len(list))
	for _, w := range list {
		t, err := p.backend.Task(ctx, w.Root)
		if err == nil {
			roots[w.Root] = t
		} else if !errors.Is(err, history.ErrNotFound) {
			return nil, err
		}
	}
	return roots, nil
}
