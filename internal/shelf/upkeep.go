package shelf

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/state/query"
)

// Health says that all is well.
func (m *memory) Health() store.Health { return store.Health{Location: ":memory:"} }

// Rules keep everything.
func (m *memory) Rules() store.Rules { return store.Rules{} }

// Today is what the clock says.
func (m *memory) Today(context.Context) (time.Time, error) { return time.Now(), nil }

// Prunable removes nothing.
func (m *memory) Prunable(_ context.Context, now time.Time) (store.Plan, error) {
	all := store.Count{Exact: true}
	return store.Plan{Succeeded: all, Failed: all, Events: all, Size: all, Tasks: len(m.match(query.Query{}, now))}, nil
}
