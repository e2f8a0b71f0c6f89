package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// loadTime bounds reading a stored task.
const loadTime = 10 * time.Second

// applyStored applies events of tasks that only the store may have, in their order. mu is held, but not while most of these
// tasks are read. Each is loaded just before its event, since a new task may evict it. Events of those that cannot be read at present
// are kept for applyDeferred.
func (in *Ingester) applyStored(ctx context.Context, events []state.Event, apply func(e *state.Event)) {
	saved, unread := in.readStored(ctx, events)
	if unread != nil && !in.counts() { // the leader counts them
		unread = nil
	}
	in.applyRead(ctx, events, saved, unread, apply)
}

// counts reports whether what this process folds is counted: then it has to know what is stored.
func (in *Ingester) counts() bool { return in.shared == nil || in.leads.Load() }

// readStored returns the saved events of the tasks that only the store may have, by id, and the ids of those that cannot be read at
// present, nil if there are none. mu is held, but not while it reads.
func (in *Ingester) readStored(ctx context.Context, events []state.Event) (saved map[string][]byte, unread map[string]bool) {
	saved = make(map[string][]byte)
	for i := range events {
		if in.cluster.NeedsLoad(&events[i]) {
			saved[events[i].ID] = nil
		}
	}
	away := len(in.deferred) > 0 // then the store is not asked for each event
	in.mu.Unlock()
	defer in.mu.Lock()
	for id := range saved {
		if !away {
			saved[id], away = in.savedTask(ctx, id)
		}
		if away {
			if unread == nil {
				unread = make(map[string]bool)
			}
			unread[id] = true
		}
	}
	return saved, unread
}

// applyRead applies events with what readStored has returned. mu is held.
func (in *Ingester) applyRead(ctx context.Context, events []state.Event, saved map[string][]byte, unread map[string]bool, apply func(e *state.Event)) {
	for i := range events {
		e := &events[i]
		if in.cluster.NeedsLoad(e) {
			if unread[e.ID] {
				in.deferred = append(in.deferred, *e)
				continue
			}
			body, read := saved[e.ID]
			if !read { // an event before this one has evicted the task
				body, _ = in.savedTask(ctx, e.ID)
			}
			in.load(e.ID, body)
		}
		apply(e)
	}
}

// applyDeferred applies events that wait for a store that could not be read, if it can be again.
func (in *Ingester) applyDeferred(ctx context.Context) {
	in.folding.Lock()
	defer in.folding.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.deferred) == 0 {
		return
	}
	id := in.deferred[0].ID
	in.mu.Unlock()
	_, away := in.savedTask(ctx, id)
	in.mu.Lock()
	if !away {
		events := in.deferred
		in.deferred = nil
		in.applyStored(ctx, events, in.apply)
		in.notify()
	}
}

// savedTask reads the saved events of a task, nil if there are none, and reports whether the store cannot be reached. Events of a task
// that cannot be read for another reason count as new. It is not cut short: what is received is folded.
func (in *Ingester) savedTask(ctx context.Context, id string) (body []byte, away bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTime)
	defer cancel()
	body, err := in.store.Task(ctx, id)
	if err != nil && !errors.Is(err, history.ErrNotFound) {
		in.log.Error("stored task not read", "error", err)
	}
	return body, errors.Is(err, history.ErrUnreachable)
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
