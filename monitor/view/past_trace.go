package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/trace"
	"github.com/umbelhq/umbel/state"
)

// ChangedSince returns the ids of the tasks of which something was received after since, and of those that were not finished.
// If there are more than trace.MaxTasks, the error is trace.ErrTooLarge.
func (p *Past) ChangedSince(ctx context.Context, since time.Time) (ids []string, err error) {
	from, seen := since.UnixMicro(), make(map[string]bool)
	add := func(id string, saved []byte) error {
		newer, err := receivedBetween(id, saved, from, p.at)
		if newer && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
		return err
	}
	for page := (state.Page{Older: &state.Position{}}); page.Older != nil; {
		page = p.cluster.Tasks(state.Query{From: nonZero(page.Older), Limit: maxPage})
		for i := range page.Tasks {
			seen[page.Tasks[i].ID] = true
			ids = append(ids, page.Tasks[i].ID)
		}
	}
	for i := range p.divided {
		if seen[p.divided[i].ID] {
			continue
		}
		saved, err := p.saved(ctx, p.divided[i].ID)
		if errors.Is(err, history.ErrNotFound) { // removed meanwhile
			continue
		}
		if err == nil {
			err = add(p.divided[i].ID, saved)
		}
		if err != nil {
			return nil, err
		}
	}
	more, err := p.store.ChangedBetween(ctx, from, p.at, trace.MaxTasks, func(id string, saved []byte) error {
		if newer, ok := p.unsaved[id]; ok {
			saved = newer
		}
		return add(id, saved)
	})
	if more || len(ids) > trace.MaxTasks {
		err = cmp.Or(err, trace.ErrTooLarge)
	}
	return ids, err
}

// nonZero returns nil for the top of a list.
func nonZero(at *state.Position) *state.Position {
	if *at == (state.Position{}) {
		return nil
	}
	return at
}

func receivedBetween(id string, saved []byte, from, to int64) (bool, error) {
	receipts, err := state.Receipts(id, saved)
	for _, at := range receipts {
		if at > from && at <= to {
			return true, err
		}
	}
	return false, err
}

// Trace adds tasks to a trace as of the instant, and the workers as they were since the first event of these.
func (p *Past) Trace(ctx context.Context, b *trace.Builder, ids []string) error {
	b.Header.Until, b.Header.Doubts = p.Instant(), p.lacks
	for _, id := range ids {
		saved, err := p.saved(ctx, id)
		if errors.Is(err, history.ErrNotFound) {
			continue
		}
		if err == nil {
			_, err = b.Task(id, saved)
		}
		if err != nil {
			return fmt.Errorf("add task %s: %w", id, err)
		}
	}
	if b.Header.Tasks == 0 {
		return nil
	}
	first := b.Header.First.UnixMicro()
	pause := (p.at - first) / trace.MaxWorkers
	for at := p.at; ; at -= pause + 1 {
		s, err := p.store.Snapshot(ctx, at)
		if err != nil {
			return fmt.Errorf("read snapshot: %w", err)
		}
		if s.At == 0 {
			return nil
		}
		if err := b.Workers(trace.Workers{At: s.At, Clock: s.Clock, Saved: s.Workers}); err != nil || s.At <= first {
			return err
		}
		at = min(at, s.At)
	}
}

// saved returns the events of a task, those that were received later too.
func (p *Past) saved(ctx context.Context, id string) ([]byte, error) {
	if saved, ok := p.unsaved[id]; ok {
		return saved, nil
	}
	return p.store.Task(ctx, id)
}
