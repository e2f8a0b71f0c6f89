package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

const (
	loadTime = 10 * time.Second // bounds reading stored tasks once
	loadPage = 500              // tasks read at once
)

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
	ids := in.unreadAmong(events, saved)
	if len(in.deferred) > 0 { // then the store is not asked for each event
		return saved, setOf(ids)
	}
	in.mu.Unlock()
	defer in.mu.Lock()
	return saved, setOf(in.readSaved(ctx, ids, saved))
}

// setOf returns the set of ids, nil if there are none.
func setOf(ids []string) map[string]bool {
	if len(ids) == 0 {
		return nil
	}
	set := make(map[string]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// readSaved reads the saved events of tasks into saved, and returns those that cannot be read at present. A store across a network
// reads many at once.
func (in *Ingester) readSaved(ctx context.Context, ids []string, saved map[string][]byte) (left []string) {
	if in.shared == nil {
		for i, id := range ids {
			body, away := in.savedTask(ctx, id)
			if away {
				return ids[i:]
			}
			saved[id] = body
		}
		return nil
	}
	for len(ids) > 0 {
		page := ids[:min(loadPage, len(ids))]
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTime)
		tasks, err := in.shared.StoredTasks(ctx, page)
		cancel()
		if err != nil {
			in.log.Error("stored tasks not read", "error", err)
		}
		if errors.Is(err, history.ErrUnreachable) {
			return ids
		}
		for _, t := range tasks {
			saved[t.ID] = t.Events
		}
		ids = ids[len(page):]
	}
	return nil
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
			if _, read := saved[e.ID]; !read { // an event before this one has evicted the task, and perhaps those of the next
				for _, id := range in.readSaved(ctx, in.unreadAmong(events[i:min(i+loadPage, len(events))], saved), saved) {
					delete(saved, id) // is read again for its own event
				}
			}
			in.load(e.ID, saved[e.ID])
		}
		apply(e)
	}
}

// unreadAmong adds the tasks of events that only the store may have to saved, and returns those that were not there. mu is held.
func (in *Ingester) unreadAmong(events []state.Event, saved map[string][]byte) (ids []string) {
	for i := range events {
		id := events[i].ID
		if _, read := saved[id]; !read && in.cluster.NeedsLoad(&events[i]) {
			saved[id] = nil
			ids = append(ids, id)
		}
	}
	return ids
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
