package view

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

const (
	listedTasks  = 2_000 // that are read for a page of workflows; of others, the counts and times of the store are shown
	freshTasks   = 1_000 // unsaved tasks that are looked through for new workflows
	freshAtOnce  = 100   // new workflows of one page
	maxOfOneRead = 500   // tasks of a workflow that is read for a list
)

// Workflows returns a page of the list of workflows. The first page begins with those that are not saved yet. Times are
// corrected by what is known of clocks: of all tasks, or, where that is too much to read, of the root alone.
func (r *Reader) Workflows(ctx context.Context, q history.WorkflowRequest) (history.WorkflowPage, error) {
	q.Limit = min(max(q.Limit, 1), maxPage)
	fresh, err := r.freshWorkflows(ctx, q)
	if err != nil {
		return history.WorkflowPage{}, err
	}
	stored := q
	stored.Limit = max(q.Limit-len(fresh), 1)
	page, err := r.store.Workflows(ctx, stored)
	if err != nil {
		return page, err
	}
	read := 0
	for i := range page.Workflows {
		s := &page.Workflows[i]
		if s.Tasks > maxOfOneRead || read+s.Tasks > listedTasks {
			err = r.correctRoot(ctx, s)
		} else {
			read += s.Tasks
			err = r.current(ctx, s)
		}
		if err != nil {
			return page, err
		}
	}
	page.Workflows = slices.DeleteFunc(page.Workflows, func(s history.WorkflowSummary) bool {
		return q.Status != "" && s.Status() != q.Status // it has changed since it was saved
	})
	fresh = slices.DeleteFunc(fresh, func(f history.WorkflowSummary) bool { // saved meanwhile
		return slices.ContainsFunc(page.Workflows, func(s history.WorkflowSummary) bool { return s.Root == f.Root })
	})
	page.Workflows = slices.Concat(fresh, page.Workflows)
	return page, nil
}

// current counts the tasks of a workflow as they are now.
func (r *Reader) current(ctx context.Context, s *history.WorkflowSummary) error {
	w, err := r.Workflow(ctx, s.Root)
	if errors.Is(err, history.ErrNotFound) { // removed meanwhile
		return nil
	}
	if err == nil {
		s.Summary, s.Name = w.Summary(), cmp.Or(w.Name(), s.Name)
	}
	return err
}

// correctRoot corrects the start of a workflow that began with its root.
func (r *Reader) correctRoot(ctx context.Context, s *history.WorkflowSummary) error {
	t, err := r.Task(ctx, s.Root)
	if errors.Is(err, history.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	asSent := workflow.Of(&t, nil)
	if asSent.FirstAt() == s.StartedAt {
		var offsets map[string]int64
		r.source.View(func(c state.View) { offsets = workflow.Offsets(c.Workers()) })
		corrected := workflow.Of(&t, offsets)
		s.StartedAt = corrected.FirstAt()
	}
	if s.EndedAt != 0 {
		s.EndedAt = max(s.EndedAt, s.StartedAt)
	}
	return nil
}

// freshWorkflows returns the workflows that the store does not list, or not with their status of now, newest first, for the
// first page.
func (r *Reader) freshWorkflows(ctx context.Context, q history.WorkflowRequest) ([]history.WorkflowSummary, error) {
	if q.Before != 0 || q.Begun != 0 || q.Roots != nil {
		return nil, nil
	}
	var unsaved []state.Task
	r.source.View(func(c state.View) { unsaved = c.UnsavedTasks(nil, false, freshTasks) })
	var roots []string
	begun := make(map[string]bool) // roots that have other tasks
	for i := range unsaved {
		root := unsaved[i].ID
		if of := unsaved[i].RootID; of != nil && *of != root {
			root = *of
			begun[root] = true
		} else if q.Status == "" || begun[root] {
			continue
		}
		if !slices.Contains(roots, root) && len(roots) < freshAtOnce {
			roots = append(roots, root)
		}
	}
	if len(roots) == 0 {
		return nil, nil
	}
	known, err := r.store.Workflows(ctx, history.WorkflowRequest{Roots: roots, Limit: len(roots)})
	if err != nil {
		return nil, err
	}
	var list []history.WorkflowSummary
	for _, root := range roots {
		at := slices.IndexFunc(known.Workflows, func(s history.WorkflowSummary) bool { return s.Root == root })
		if at < 0 && !begun[root] || at >= 0 && (q.Status == "" || known.Workflows[at].Status() == q.Status) {
			continue
		}
		w, err := r.Workflow(ctx, root)
		if errors.Is(err, history.ErrNotFound) { // evicted and removed meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		s := history.WorkflowSummary{Summary: w.Summary(), Root: root, Name: w.Name()}
		if (q.Status == "" || s.Status() == q.Status) && (q.Name == "" || s.Name == q.Name) {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b history.WorkflowSummary) int { return cmp.Compare(b.StartedAt, a.StartedAt) })
	return list[:min(len(list), q.Limit-1)], nil
}
