package web

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

// workflowPages are the pages of workflows: the tasks that one root task led to.
type workflowPages struct {
	*common
	groups *storedGroups // nil if there is no result backend
}

// workflowTab is one way to draw a workflow, at ?tab=name.
type workflowTab struct {
	name, label string
	// params are the parameters of the address that the tab has; others are dropped.
	params []string
	load   func(ctx context.Context, w *workflow.Workflow, query url.Values) (templates.WorkflowTab, error)
}

// tabs are all tabs of the page. The first is shown where the address names none.
func (p *workflowPages) tabs() []workflowTab {
	return []workflowTab{
		{"", "Waterfall", []string{paramIdle, paramOpen}, p.waterfall},
		{graphTab, "Graph", []string{paramOpen}, p.graph},
		{spaceTimeTab, "Space-time", []string{paramOrder, paramFrom}, p.spaceTime},
	}
}

const (
	paramTab  = "tab"
	paramIdle = "idle" // shown: gaps in which nothing happens are not folded
	paramOpen = "open" // tasks whose folded children are shown
)

// loadWorkflow shows one workflow.
func (p *workflowPages) loadWorkflow(ctx context.Context, a address) (page, error) {
	w, err := p.backend.Workflow(ctx, a.name)
	if errors.Is(err, history.ErrNotFound) {
		return page{}, unknown(templates.Problem{
			Title:   "Unknown workflow",
			Message: "No retained task has the root " + a.name + ".",
			Back:    p.urls.Prefix + templates.WorkflowsPath, BackText: "All workflows",
		})
	}
	if err != nil {
		return page{}, fmt.Errorf("read workflow: %w", err)
	}
	v := templates.Workflow{Workflow: w}
	var current workflowTab
	for i, t := range p.tabs() {
		if i == 0 || t.name == a.query.Get(paramTab) {
			current = t
		}
	}
	for _, t := range p.tabs() {
		v.Tabs = append(v.Tabs, templates.Choice{
			Text: t.label, Href: p.urls.Prefix + workflowURL(w.Root, t, nil), Current: t.name == current.name,
		})
	}
	if v.Tab, err = current.load(ctx, &v.Workflow, a.query); err != nil {
		return page{}, err
	}
	return page{url: workflowURL(w.Root, current, a.query), title: v.Title(), section: templates.SectionWorkflows, view: v}, nil
}

// workflowURL is the address of a tab below the prefix, with what it has of the parameters.
func workflowURL(root string, t workflowTab, query url.Values) string {
	kept := url.Values{}
	if t.name != "" {
		kept.Set(paramTab, t.name)
	}
	for _, name := range t.params {
		for _, value := range query[name] {
			if value != "" {
				kept.Add(name, value)
			}
		}
	}
	if len(kept) == 0 {
		return templates.WorkflowPath(root)
	}
	return templates.WorkflowPath(root) + "?" + kept.Encode()
}

// waterfall is the tab with a row per attempt.
func (p *workflowPages) waterfall(ctx context.Context, w *workflow.Workflow, query url.Values) (templates.WorkflowTab, error) {
	groups := p.groupsOf(ctx, w).Groups
	return templates.NewWaterfall(w, templates.WaterfallOptions{Open: query[paramOpen], Groups: groups, Elapsed: p.elapsed, Idle: query.Get(paramIdle) == "shown"}), nil
}

// elapsed bounds the time between two events by what is known of clocks now.
func (p *common) elapsed(from, to state.Moment) (e state.Elapsed, ok bool) {
	p.backend.View(func(c state.View) { e, ok = c.Elapsed(from, to) })
	return e, ok
}
