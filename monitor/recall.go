package monitor

import (
	"context"
	"errors"

	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/state"
)

// recall reads the stored events of tasks that events are of, by id. What cannot be read is left out: such events then
// count as new.
func (m *Monitor) recall(ctx context.Context, events []state.Event) map[string][]byte {
	saved := make(map[string][]byte)
	for i := range events {
		id := events[i].ID
		if _, known := saved[id]; known {
			continue
		}
		body, err := m.store.Task(ctx, id)
		if err != nil && !errors.Is(err, store.ErrMissing) && ctx.Err() == nil {
			m.log.Error("stored task not read", "error", err)
		}
		saved[id] = body
	}
	return saved
}

// takeBack brings stored tasks back into memory and folds events in. mu is held.
func (m *Monitor) takeBack(saved map[string][]byte, events []state.Event) {
	for id, body := range saved {
		if body == nil {
			continue
		}
		if err := m.cluster.Recall(id, body); err != nil {
			m.log.Error("stored events of a task not read", "error", err)
		}
	}
	for i := range events {
		m.take(&events[i])
	}
}
