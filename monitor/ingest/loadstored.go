package ingest

import (
	"context"
	"errors"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// loadStored loads the tasks of events that only the store may have. Events of a task that cannot be read count as new. mu is
// held, but not while the store is read.
func (in *Ingester) loadStored(ctx context.Context, events []state.Event) {
	saved := make(map[string][]byte)
	for i := range events {
		if in.cluster.NeedsLoad(&events[i]) {
			saved[events[i].ID] = nil
		}
	}
	in.mu.Unlock()
	for id := range saved {
		body, err := in.store.Task(ctx, id)
		if err != nil && !errors.Is(err, history.ErrNotFound) && ctx.Err() == nil {
			in.log.Error("stored task not read", "error", err)
		}
		saved[id] = body
	}
	in.mu.Lock()
	for id, body := range saved {
		if body == nil {
			continue
		}
		if err := in.cluster.LoadWithoutEviction(id, body); err != nil {
			in.log.Error("stored events of a task not read", "error", err)
		}
	}
}
