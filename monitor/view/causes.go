package view

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/causality"
	"github.com/umbelhq/umbel/state/query"
)

const (
	maxWorkflow = 1_000           // tasks of its workflow among which what is related to a task is looked for,
	maxBeside   = 500             // and that changed last before it, and first after it
	maxRelated  = 1_000           // tasks that one value of a causal field stands for
	maxCauses   = 64              // tasks whose related tasks are cached
	causesAge   = 2 * time.Second // of those
)

// TaskSource has the tasks and events among which causes are looked for: a Reader, or Stored.
type TaskSource interface {
	Task(ctx context.Context, id string) (state.Task, error)
	TaskEvents(ctx context.Context, id string) ([]state.TaskEvent, error)
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
}

// Stored is a history as a TaskSource.
type Stored struct{ history.TaskReader }

// Task returns a task without its children.
func (s Stored) Task(ctx context.Context, id string) (state.Task, error) {
	t, _, err := s.decode(ctx, id)
	return t, err
}

// TaskEvents returns the events of a task by stamp.
func (s Stored) TaskEvents(ctx context.Context, id string) ([]state.TaskEvent, error) {
	_, events, err := s.decode(ctx, id)
	return events, err
}

func (s Stored) decode(ctx context.Context, id string) (state.Task, []state.TaskEvent, error) {
	saved, err := s.TaskReader.Task(ctx, id)
	if err != nil {
		return state.Task{}, nil, err
	}
	return state.DecodeTask(id, saved)
}

// ResolveCauses replaces the conditions of a query on causal fields by the ids of the tasks that meet them. The error is a
// *query.UnknownTaskError for a task without events.
func ResolveCauses(ctx context.Context, from TaskSource, q query.Query, now time.Time) (query.Query, error) {
	return resolveCauses(q, func(id string) (*causes, error) { return findCauses(ctx, from, id, now) })
}

func resolveCauses(q query.Query, find func(id string) (*causes, error)) (query.Query, error) {
	if !q.Causal() {
		return q, nil
	}
	var failed error
	resolved := q.Resolve(func(f query.Field, id string) ([]string, bool) {
		if !f.Causal() || failed != nil {
			return nil, false
		}
		c, err := find(id)
		if err != nil {
			failed = err
			return nil, false
		}
		return c.of(f), true
	})
	return resolved, failed
}

// causes are the tasks that are causally related to one, the nearest by time first.
type causes struct {
	id                        string
	before, after, concurrent []string
	at                        time.Time
}

func (c *causes) of(f query.Field) []string {
	switch f {
	case query.Before:
		return c.before
	case query.After:
		return c.after
	case query.Concurrent:
		return c.concurrent
	default:
		all := append([]string{c.id}, c.before...)
		for _, id := range c.after {
			if !slices.Contains(all, id) {
				all = append(all, id)
			}
		}
		return all
	}
}

// findCauses looks for what is causally related to a task in its workflow and among the tasks that changed shortly before
// and after it. A graph of them is made for this question alone.
func findCauses(ctx context.Context, from TaskSource, id string, now time.Time) (*causes, error) {
	t, err := from.Task(ctx, id)
	if errors.Is(err, history.ErrNotFound) || err == nil && t.Stamp.Clock == 0 {
		return nil, &query.UnknownTaskError{ID: id}
	}
	if err != nil {
		return nil, err
	}
	tasks := []state.Task{t}
	known := map[string]bool{id: true}
	add := func(r history.TaskRequest, most int) error {
		r.Limit, r.Now = maxPage, now
		for most > 0 {
			page, err := from.Tasks(ctx, r)
			if err != nil {
				return err
			}
			for _, t := range page.Tasks[:min(len(page.Tasks), most)] {
				if !known[t.ID] {
					known[t.ID] = true
					tasks = append(tasks, t)
				}
			}
			most -= len(page.Tasks)
			if r.From = page.Next; r.Newer {
				r.From = page.Prev
			}
			if r.From == nil || len(page.Tasks) == 0 {
				break
			}
		}
		return nil
	}
	root := id
	if t.RootID != nil {
		root = *t.RootID
	}
	here := &state.Position{Stamp: t.Stamp, ID: id}
	err = cmp.Or(
		add(history.TaskRequest{Query: query.New(query.Equal(query.Root, root))}, maxWorkflow),
		add(history.TaskRequest{From: here}, maxBeside),
		add(history.TaskRequest{From: here, Newer: true}, maxBeside),
	)
	if err != nil {
		return nil, err
	}
	return relate(ctx, from, tasks, now)
}

// relate relates the first of the tasks to the others.
func relate(ctx context.Context, from TaskSource, tasks []state.Task, now time.Time) (*causes, error) {
	var events []causality.Event
	for i := range tasks {
		e, err := from.TaskEvents(ctx, tasks[i].ID)
		if errors.Is(err, history.ErrNotFound) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		events = append(events, causality.OfTask(&tasks[i], e)...)
	}
	t := &tasks[0]
	c := &causes{id: t.ID, at: now}
	before, after := causality.New(events).Around(t.ID)
	others := tasks[1:]
	slices.SortFunc(others, func(a, b state.Task) int {
		return cmp.Compare(distance(&a, t), distance(&b, t))
	})
	add := func(list *[]string, id string) {
		if len(*list) < maxRelated {
			*list = append(*list, id)
		}
	}
	for i := range others {
		id := others[i].ID
		if before[id] {
			add(&c.before, id)
		}
		if after[id] {
			add(&c.after, id)
		}
		if !before[id] && !after[id] {
			add(&c.concurrent, id)
		}
	}
	return c, nil
}

// distance is how far apart two tasks last changed, by logical time.
func distance(a, b *state.Task) int64 {
	return max(a.Stamp.Clock-b.Stamp.Clock, b.Stamp.Clock-a.Stamp.Clock)
}

// causeCache caches causes: a page asks several times for the same. It is safe for concurrent use.
type causeCache struct {
	mu   sync.Mutex
	list []*causes // oldest first
}

func (c *causeCache) find(id string, now time.Time, find func() (*causes, error)) (*causes, error) {
	c.mu.Lock()
	defer c.mu.Unlock() // those who ask for the same meanwhile wait for the answer
	c.list = slices.DeleteFunc(c.list, func(x *causes) bool { return now.Sub(x.at).Abs() >= causesAge })
	for _, x := range c.list {
		if x.id == id {
			return x, nil
		}
	}
	x, err := find()
	if err != nil {
		return nil, err
	}
	if len(c.list) == maxCauses {
		c.list = c.list[1:]
	}
	c.list = append(c.list, x)
	return x, nil
}

// resolveCauses resolves a query of one that reads r.
func (r *Reader) resolveCauses(ctx context.Context, q query.Query) (query.Query, error) {
	q, err := q.Within(r.cluster)
	if err != nil {
		return q, err
	}
	return resolveCauses(q, func(id string) (*causes, error) {
		now := r.now()
		return r.causes.find(id, now, func() (*causes, error) { return findCauses(ctx, r, id, now) })
	})
}
