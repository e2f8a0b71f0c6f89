package view

import (
	"context"
	"errors"
	"slices"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Outboxes knows the tasks in the outboxes of applications: an outboxwatch.Watcher.
type Outboxes interface {
	Trace(id string) (outboxwatch.Trace, bool)
	Traces(s outboxwatch.Stage, limit int) []outboxwatch.Trace
}

const (
	maxResolved = 1_000 // tasks that one value of query.Outbox stands for
	maxUnsent   = 5_000 // traces that are searched by id or text
	maxAdded    = 200   // of them without events on one page
)

// WatchOutboxes has tasks in outboxes listed, those too that no event has told of. Call it before anything is read.
func (r *Reader) WatchOutboxes(o Outboxes) { r.outboxes = o }

// outboxTask is a task that only an outbox tells of, history.ErrNotFound if none does.
func (r *Reader) outboxTask(id string) (state.Task, error) {
	if r.outboxes == nil {
		return state.Task{}, history.ErrNotFound
	}
	t, ok := r.outboxes.Trace(id)
	if !ok {
		return state.Task{}, history.ErrNotFound
	}
	return taskOf(&t), nil
}

// taskOf returns a task as an outbox tells of it. Without an event it has no logical time, so it comes last in lists.
func taskOf(t *outboxwatch.Trace) state.Task {
	at := t.CommittedAt.UnixMicro()
	return state.Task{ID: t.TaskID, Name: &t.TaskName, State: state.Pending, Stamp: clock.Stamp{Micros: at, Origin: t.Outbox}, UpdatedAt: at}
}

// resolve replaces conditions on outboxes by the ids of the tasks that meet them, the newest maxResolved of each.
func (r *Reader) resolve(q query.Query) query.Query {
	if r.outboxes == nil {
		return q
	}
	return q.Resolve(func(f query.Field, value string) ([]string, bool) {
		if f != query.Outbox {
			return nil, false
		}
		list := r.outboxes.Traces(outboxwatch.Stage(value), maxResolved)
		ids := make([]string, len(list))
		for i := range list {
			ids[i] = list[i].TaskID
		}
		return ids, true
	})
}

// outboxTasks returns the page if the query asks for tasks in outboxes alone, which are few; else the request with its
// query resolved.
func (r *Reader) outboxTasks(ctx context.Context, q history.TaskRequest) (resolved history.TaskRequest, done *history.TaskPage, err error) {
	if r.outboxes == nil || !q.Query.Mentions(query.Outbox) {
		return q, nil, nil
	}
	list, ok, err := r.inOutboxes(ctx, &q)
	if err != nil || !ok {
		return q, nil, err
	}
	page := list.page(nil)
	return q, &page, nil
}

// inOutboxes gathers all tasks that match a query with a condition on outboxes which must hold, false if it has none. It
// resolves the query.
func (r *Reader) inOutboxes(ctx context.Context, q *history.TaskRequest) (*list, bool, error) {
	var stages []query.Value
	for _, c := range q.Query.Conditions() {
		if t, ok := c.Expr().(query.Term); ok && t.Field == query.Outbox {
			stages = append(stages, t.Values...)
			break
		}
	}
	q.Query = r.resolve(q.Query)
	if stages == nil {
		return nil, false, nil
	}
	l := newList(*q)
	seen := map[string]bool{}
	for _, stage := range stages {
		for _, t := range r.outboxes.Traces(outboxwatch.Stage(stage.Text), maxResolved) {
			if seen[t.TaskID] {
				continue
			}
			seen[t.TaskID] = true
			found, err := r.Task(ctx, t.TaskID)
			if errors.Is(err, history.ErrNotFound) {
				continue // forgotten meanwhile
			}
			if err != nil {
				return nil, false, err
			}
			l.add(&found)
		}
	}
	return l, true, nil
}

// countOutbox counts the tasks that match a query on outboxes.
func (r *Reader) countOutbox(ctx context.Context, q query.Query) (history.Count, error) {
	request := history.TaskRequest{Query: q, Now: r.now()}
	l, ok, err := r.inOutboxes(ctx, &request)
	if err != nil {
		return history.Count{}, err
	}
	if !ok {
		return r.store.Count(ctx, request.Query, request.Now, maxCount)
	}
	return history.Count{N: len(l.rows), Exact: len(l.rows) < maxResolved}, nil
}

// addUnsent adds the tasks of which only outboxes tell to a list of tasks with some id or text.
func (r *Reader) addUnsent(ctx context.Context, l *list) error {
	q := l.request.Query
	if r.outboxes == nil || l.request.Sort.Field != 0 || !q.Mentions(query.ID) && !q.Mentions(query.Any) {
		return nil
	}
	var found []state.Task
	for _, t := range r.outboxes.Traces("", maxUnsent) {
		if task := taskOf(&t); q.Match(&task, l.request.Now) && len(found) < maxAdded {
			found = append(found, task)
		}
	}
	r.source.View(func(c state.View) {
		found = slices.DeleteFunc(found, func(t state.Task) bool { _, known := c.Task(t.ID); return known })
	})
	for i := range found {
		_, err := r.store.Task(ctx, found[i].ID)
		switch {
		case errors.Is(err, history.ErrNotFound):
			l.add(&found[i])
		case err != nil:
			return err
		}
	}
	return nil
}

var _ Outboxes = (*outboxwatch.Watcher)(nil)
