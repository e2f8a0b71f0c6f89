package view

import (
	"context"
	"errors"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

// Workflow returns the tasks of a root as they were, or history.ErrNotFound if none was known. Of more than workflow.MaxTasks
// it returns those that changed first.
func (p *Past) Workflow(ctx context.Context, root string) (workflow.Workflow, error) {
	l := workflowTasks{offsets: workflow.Offsets(p.cluster.Workers()), ids: make(map[string]bool)}
	add := func(t *state.Task) {
		if l.ids[t.ID] || t.ID != root && (t.RootID == nil || *t.RootID != root) {
			return
		}
		if held, ok := p.cluster.Task(t.ID); ok { // which knows of workers
			t = &held
		}
		l.add(t)
	}
	for i := range p.divided {
		add(&p.divided[i])
	}
	r, stored := state.Reader{Until: p.at}, 0
	total, err := p.store.WorkflowTasks(ctx, root, workflow.MaxTasks, func(id string, events []byte) error {
		stored++
		if _, newer := p.unsaved[id]; newer || l.ids[id] {
			return nil
		}
		t, err := r.Task(id, events)
		if errors.Is(err, state.ErrUnknownYet) {
			return nil
		}
		if err == nil {
			add(&t)
		}
		return err
	})
	if err != nil {
		return workflow.Workflow{}, err
	}
	if len(l.tasks) == 0 {
		return workflow.Workflow{}, history.ErrNotFound
	}
	w := workflow.Assemble(root, l.tasks)
	w.AtLeast = total > stored || len(l.ids) > len(l.tasks)
	return w, nil
}

// Bounds of what is read for a page of the list of workflows.
const (
	maxWorkflowsThen = 500
	maxTasksThen     = 10_000 // and those of one workflow
)

// Workflows returns a page of the workflows that had begun, each as it was. The page is shorter than asked for where more
// would have to be read, and continues with the next.
func (p *Past) Workflows(ctx context.Context, q history.WorkflowRequest) (page history.WorkflowPage, err error) {
	limit := min(max(q.Limit, 1), maxPage)
	next := history.WorkflowRequest{Name: q.Name, Before: q.Before, Limit: 1, Begun: p.at}
	for read, tasks := 0, 0; read < maxWorkflowsThen && tasks < maxTasksThen && len(page.Workflows) < limit; read++ {
		one, err := p.store.Workflows(ctx, next)
		if err != nil {
			return page, err
		}
		for _, s := range one.Workflows {
			tasks += s.Tasks
			w, err := p.Workflow(ctx, s.Root)
			if err != nil && !errors.Is(err, history.ErrNotFound) {
				return page, err
			}
			s.Name, s.Summary = w.Name(), w.Summary()
			begun := len(w.Tasks) > 1 || len(w.Tasks) == 1 && w.Tasks[0].ID != s.Root
			if begun && (q.Status == "" || s.Status() == q.Status) {
				page.Workflows = append(page.Workflows, s)
			}
		}
		if page.Next, next.Before = one.Next, one.Next; one.Next == 0 {
			break
		}
	}
	return page, nil
}
