package ingest

import (
	"context"
	"errors"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// applyStored applies events of tasks that only the store may have, in their order. mu is held, but not while most of these
// tasks are read. Each is loaded just before its event, since a new task may evict it.
func (in *Ingester) applyStored(ctx context.Context, events []state.Event, apply func(e *state.Event)) {
	saved := make(map[string][]byte)
	for i := range events {
		if in.cluster.NeedsLoad(&events[i]) {
			saved[events[i].ID] = nil
		}
	}
	in.mu.Unlock()
	for id := range saved {
		saved[id] = in.savedTask(ctx, id)
	}
	in.mu.Lock()
	for i := range events {
		e := &events[i]
		if in.cluster.NeedsLoad(e) {
			body, read := saved[e.ID]
			if !read { // an event before this one has evicted the task
				body = in.savedTask(ctx, e.ID)
			}
			in.load(e.ID, body)
		}
		apply(e)
	}
}

// savedTask reads the saved events of a task, nil if there are none. Events of a task that cannot be read count as new.
func (in *Ingester) savedTask(ctx context.Context, id string) []byte {
	body, err := in.store.Task(ctx, id)
	if err != nil && !errors.Is(err, history.ErrNotFound) && ctx.Err() == nil {
		in.log.Error("stored task not read", "error", err)
	}
	return body
}

// load adds a task as it was saved; nil adds nothing. mu is held.
func (in *Ingester) load(id string, saved []byte) {
	if saved == nil {
		return
	}
	if err := in.cluster.LoadWithoutEviction(id, saved); err != nil {
		in.log.Error("stored events of a task not read", "error", err)
	}
}
