package view

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const (
	maxChildren = 1_000            // listed with a task
	maxCount    = 10_000           // counted exactly
	maxCounts   = 1_000            // cached
	countAge    = 10 * time.Second // of a cached one
)

// Task returns a copy of the task, or history.ErrNotFound if it is not retained.
func (r *Reader) Task(ctx context.Context, id string) (state.Task, error) {
	var t state.Task
	var inMemory, complete, unsaved bool
	r.source.View(func(c state.View) {
		t, inMemory = c.Task(id)
		complete, unsaved = r.complete(c), c.Changed(id)
	})
	if inMemory && t.Truncated && !unsaved {
		t = r.withStoredText(ctx, t)
	}
	if inMemory && complete {
		return t, nil
	}
	if !inMemory {
		saved, err := r.store.Task(ctx, id)
		if errors.Is(err, history.ErrNotFound) {
			return r.outboxTask(id)
		}
		if err != nil {
			return state.Task{}, err
		}
		if t, _, err = state.DecodeTask(id, saved); err != nil {
			return state.Task{}, err
		}
	}
	children, err := r.store.Children(ctx, id, maxChildren)
	if err != nil {
		if inMemory && !errors.Is(err, context.Canceled) {
			return t, nil // memory has most of the children
		}
		return state.Task{}, err
	}
	stored := make(map[string]bool, len(children))
	for _, child := range children {
		stored[child] = true
	}
	for _, child := range t.Children { // those not saved yet are the newest
		if !stored[child] {
			children = append(children, child)
		}
	}
	t.Children = children[:min(len(children), maxChildren)]
	return t, nil
}

// withStoredText returns the task with the text that memory has dropped, where the history has it.
func (r *Reader) withStoredText(ctx context.Context, t state.Task) state.Task {
	saved, err := r.store.Task(ctx, t.ID)
	if err != nil {
		return t
	}
	stored, _, err := state.DecodeTask(t.ID, saved)
	if err != nil {
		return t
	}
	stored.Children = t.Children
	stored.Orphaned, stored.Returned, stored.OrphanReason = t.Orphaned, t.Returned, t.OrphanReason
	stored.Lost, stored.Dismissed = t.Lost, t.Dismissed
	return stored
}

// TaskEvents returns the events of a task by stamp, or history.ErrNotFound if it is not retained.
func (r *Reader) TaskEvents(ctx context.Context, id string) ([]state.TaskEvent, error) {
	var events []state.TaskEvent
	r.source.View(func(c state.View) { events = c.TaskEvents(id) })
	if events != nil {
		return events, nil
	}
	saved, err := r.store.Task(ctx, id)
	if errors.Is(err, history.ErrNotFound) {
		_, err = r.outboxTask(id)
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	_, events, err = state.DecodeTask(id, saved)
	return events, err
}

// complete reports whether memory holds all retained tasks.
func (r *Reader) complete(c state.View) bool {
	return r.source.Restored() && c.LowWaterMark() == nil
}

// Count returns how many tasks match, exactly up to 10,000. It may be 10 s old.
func (r *Reader) Count(ctx context.Context, q query.Query) (history.Count, error) {
	q, err := r.resolveCauses(ctx, q)
	if err != nil {
		return history.Count{}, err
	}
	if r.outboxes != nil && q.Mentions(query.Outbox) {
		return r.countOutbox(ctx, q)
	}
	if n, ok := r.countInMemory(q); ok {
		return history.Count{N: n, Exact: true}, nil
	}
	now := r.now()
	if c, ok := r.counts.read(q.String(), now); ok {
		return c, nil
	}
	c, err := r.store.Count(ctx, q, now, maxCount)
	if err != nil {
		return history.Count{}, err
	}
	r.counts.write(q.String(), c, now)
	return c, nil
}

// countInMemory counts if memory holds all tasks and counting takes no scan.
func (r *Reader) countInMemory(q query.Query) (n int, ok bool) {
	s, simple := q.Simple()
	if !simple {
		return 0, false
	}
	s.Limit = 1
	r.source.View(func(c state.View) {
		if !r.complete(c) {
			return
		}
		if total := c.Tasks(s).Total; total != nil {
			n, ok = *total, true
		}
	})
	return n, ok
}

// countCache caches counts. It is safe for concurrent use.
type countCache struct {
	mu     sync.Mutex
	counts map[string]cachedCount
}

type cachedCount struct {
	history.Count
	at time.Time
}

func (c *countCache) read(q string, now time.Time) (history.Count, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.counts[q]
	return known.Count, ok && now.Sub(known.at).Abs() < countAge
}

func (c *countCache) write(q string, n history.Count, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil || len(c.counts) >= maxCounts {
		c.counts = make(map[string]cachedCount)
	}
	c.counts[q] = cachedCount{n, now}
}
