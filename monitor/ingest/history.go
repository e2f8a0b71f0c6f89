package ingest

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
	maxCounts   = 1_000            // remembered
	countAge    = 10 * time.Second // for how long
)

// Store returns where history is kept.
func (m *Ingester) Store() history.Store { return m.store }

// Task returns a copy of the task, history.ErrMissing if it is not kept.
func (m *Ingester) Task(ctx context.Context, id string) (state.Task, error) {
	m.mu.RLock()
	t, held := m.cluster.Task(id)
	all, changed := m.complete(), m.cluster.Changed(id)
	m.mu.RUnlock()
	if held && t.Truncated && !changed {
		t = m.withStoredText(ctx, t)
	}
	if held && all {
		return t, nil
	}
	if !held {
		saved, err := m.store.Task(ctx, id)
		if err != nil {
			return state.Task{}, err
		}
		if t, _, err = state.DecodeTask(id, saved); err != nil {
			return state.Task{}, err
		}
	}
	children, err := m.store.Children(ctx, id, maxChildren)
	if err != nil {
		if held && !errors.Is(err, context.Canceled) {
			return t, nil // memory knows most of it
		}
		return state.Task{}, err
	}
	stored := make(map[string]bool, len(children))
	for _, child := range children {
		stored[child] = true
	}
	for _, child := range t.Children { // what is not stored yet is newest
		if !stored[child] {
			children = append(children, child)
		}
	}
	t.Children = children[:min(len(children), maxChildren)]
	return t, nil
}

// whole returns the task with the text that memory has dropped, as far as the store has it.
func (m *Ingester) withStoredText(ctx context.Context, t state.Task) state.Task {
	saved, err := m.store.Task(ctx, t.ID)
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

// TaskEvents returns the events of a task by stamp, history.ErrMissing if it is not kept.
func (m *Ingester) TaskEvents(ctx context.Context, id string) ([]state.TaskEvent, error) {
	m.mu.RLock()
	events := m.cluster.TaskEvents(id)
	m.mu.RUnlock()
	if events != nil {
		return events, nil
	}
	saved, err := m.store.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	_, events, err = state.DecodeTask(id, saved)
	return events, err
}

// complete reports whether memory holds all tasks. mu is held.
func (m *Ingester) complete() bool { return m.restored && m.cluster.LowWaterMark() == nil }

// Count returns how many tasks match, exactly up to 10,000. It may be 10 s old.
func (m *Ingester) Count(ctx context.Context, q query.Query) (history.Count, error) {
	if n, ok := m.tally(q); ok {
		return history.Count{N: n, Exact: true}, nil
	}
	now := m.now()
	if c, ok := m.counts.read(q.String(), now); ok {
		return c, nil
	}
	c, err := m.store.Count(ctx, q, now, maxCount)
	if err != nil {
		return history.Count{}, err
	}
	m.counts.write(q.String(), c, now)
	return c, nil
}

// tally counts where memory holds all tasks and that takes no scan.
func (m *Ingester) tally(q query.Query) (int, bool) {
	s, simple := q.Simple()
	if !simple {
		return 0, false
	}
	s.Limit = 1
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.complete() {
		return 0, false
	}
	total := m.cluster.Tasks(s).Total
	if total == nil {
		return 0, false
	}
	return *total, true
}

// countCache remembers counts. It is safe for concurrent use.
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
