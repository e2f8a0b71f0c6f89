package web

import (
	"context"
	"errors"
	"fmt"

	"github.com/umbelhq/umbel/monitor/difference"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
)

// paramWith names the task that another one is compared with.
const paramWith = "with"

// loadCompare shows two tasks side by side. Without another one it leads to the last success of the same name before the
// task.
func (p *taskPage) loadCompare(ctx context.Context, a address) (page, error) {
	id := a.name
	t, err := p.backend.Task(ctx, id)
	if errors.Is(err, history.ErrNotFound) {
		return page{}, unknown(p.unknownTask(ctx, id))
	}
	if err != nil {
		return page{}, fmt.Errorf("read task: %w", err)
	}
	v := templates.Comparison{First: p.compared(t), With: a.query.Get(paramWith)}
	if v.With == id {
		v.With = ""
	}
	if v.With == "" {
		before, err := p.successBefore(ctx, &t)
		if err != nil {
			return page{}, err
		}
		if before != "" {
			return page{}, redirect(templates.ComparePath(id, before))
		}
	} else {
		other, err := p.backend.Task(ctx, v.With)
		if v.Missing = errors.Is(err, history.ErrNotFound); err != nil && !v.Missing {
			return page{}, fmt.Errorf("read task: %w", err)
		}
		v.Second = p.compared(other)
		v.Args, v.Kwargs = compareReprs("args", t.Args, other.Args), compareReprs("kwargs", t.Kwargs, other.Kwargs)
	}
	if v.Similar, err = p.similar(ctx, &t); err != nil {
		return page{}, err
	}
	v.Similar.Pick = true
	return page{
		url: templates.ComparePath(id, v.With), title: "Compare " + taskTitle(t), section: templates.SectionTasks, view: v,
	}, nil
}

// compared is one side of a comparison.
func (p *taskPage) compared(t state.Task) templates.ComparedTask {
	v := templates.ComparedTask{Task: t}
	p.backend.View(func(c state.View) {
		if w, ok := c.Waited(&v.Task); ok {
			v.Waited = &w
		}
	})
	return v
}

// compareReprs returns nil if one of the reprs is not known.
func compareReprs(name string, a, b *string) *difference.Comparison {
	if a == nil || b == nil {
		return nil
	}
	return new(difference.Reprs(name, *a, *b))
}

// successBefore returns the id of the last task of the same name that succeeded before t, empty if there is none.
func (p *taskPage) successBefore(ctx context.Context, t *state.Task) (string, error) {
	if t.Name == nil {
		return "", nil
	}
	q := lang.New(lang.And{lang.Equal(lang.Name, *t.Name), lang.Equal(lang.State, string(state.Success))})
	found, err := p.backend.Tasks(ctx, history.TaskRequest{
		Query: q, Limit: 1, From: &state.Position{Stamp: t.Stamp, ID: t.ID}, Now: p.now(),
	})
	if err != nil {
		return "", fmt.Errorf("look for a success: %w", err)
	}
	if len(found.Tasks) == 0 {
		return "", nil
	}
	return found.Tasks[0].ID, nil
}

// similar returns the last tasks of the same name that have ended. They may be a little old.
func (p *taskPage) similar(ctx context.Context, t *state.Task) (templates.Similar, error) {
	v := templates.Similar{About: templates.RunOf(t)}
	if t.Name == nil {
		return v, nil
	}
	v.Name = *t.Name
	ended := []string{string(state.Success), string(state.Failure), string(state.Revoked), string(state.Rejected)}
	var err error
	v.Runs, err = p.runs.get(v.Name, func() ([]templates.SimilarRun, error) {
		q := lang.New(lang.And{lang.Equal(lang.Name, v.Name), lang.Equal(lang.State, ended...)})
		found, err := p.backend.Tasks(ctx, history.TaskRequest{Query: q, Limit: templates.MaxSimilar, Now: p.now()})
		if err != nil {
			return nil, fmt.Errorf("read similar tasks: %w", err)
		}
		runs := make([]templates.SimilarRun, len(found.Tasks))
		for i := range found.Tasks {
			runs[len(runs)-1-i] = templates.RunOf(&found.Tasks[i])
		}
		return runs, nil
	})
	return v, err
}
