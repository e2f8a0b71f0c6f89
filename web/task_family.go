package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

const (
	maxSiblings = 8  // drawn with a task, those sent next to it
	maxCalled   = 20 // tasks that a task has sent which are drawn with it
)

// family is what surrounds a task in its workflow: as much as is read for each update of its page.
type family struct {
	parent             *state.Task // nil if there is none, or none is retained
	siblings, children []state.Task
}

// family reads the family of a task.
func (p *taskPage) family(ctx context.Context, t *state.Task) (f family, err error) {
	if t.ParentID != nil && *t.ParentID != "" && *t.ParentID != t.ID {
		var parents []state.Task
		if parents, err = p.retained(ctx, []string{*t.ParentID}); len(parents) > 0 {
			f.parent = &parents[0]
			f.siblings, err = p.retained(ctx, nextTo(f.parent.Children, t.ID))
		}
	}
	children, other := p.retained(ctx, t.Children[:min(len(t.Children), maxCalled)])
	f.children = children
	return f, cmp.Or(err, other)
}

// retained returns those of some tasks that are retained, and why others cannot be read.
func (p *taskPage) retained(ctx context.Context, ids []string) ([]state.Task, error) {
	tasks := make([]state.Task, 0, len(ids))
	var failed error
	for _, id := range ids {
		t, err := p.backend.Task(ctx, id)
		if err == nil {
			tasks = append(tasks, t)
		} else if !errors.Is(err, history.ErrNotFound) {
			failed = fmt.Errorf("read task: %w", err)
		}
	}
	return tasks, failed
}

// nextTo returns the ids around one of a list, without it: as many before it as after it where there are.
func nextTo(ids []string, id string) []string {
	at := slices.Index(ids, id)
	if at < 0 {
		return nil
	}
	from := max(min(at-maxSiblings/2, len(ids)-1-maxSiblings), 0)
	to := min(from+maxSiblings+1, len(ids))
	return slices.Concat(ids[from:at], ids[at+1:to])
}

// waterfall draws a task amid its family.
func (p *taskPage) waterfall(t *state.Task, f family) templates.Family {
	var offsets map[string]int64
	p.backend.View(func(c state.View) { offsets = workflow.Offsets(c.Workers()) })
	v := templates.Family{Children: len(t.Children), ChildrenDrawn: len(f.children)}
	tasks := []workflow.Task{workflow.Of(t, offsets)}
	if f.parent != nil {
		tasks = append(tasks, workflow.Of(f.parent, offsets))
		v.Siblings, v.SiblingsDrawn = max(len(f.parent.Children)-1, len(f.siblings)), len(f.siblings)
	}
	for _, list := range [][]state.Task{f.siblings, f.children} {
		for i := range list {
			tasks = append(tasks, workflow.Of(&list[i], offsets))
		}
	}
	root := t.ID
	if t.RootID != nil && *t.RootID != "" {
		root = *t.RootID
	}
	w := workflow.Assemble(root, tasks)
	v.Waterfall = templates.NewWaterfall(&w, templates.WaterfallOptions{About: t.ID, Elapsed: p.elapsed})
	return v
}
