package shelf

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/query"
)

// memory is a store that keeps views and what was resolved of failures, and knows nothing else. Other uses of
// it panic.
type memory struct {
	history.Store
	match func(q query.Query, now time.Time) []state.Task

	mu       sync.Mutex
	views    []history.View
	last     int
	resolved map[fingerprint.ID]time.Time
}

// Views returns all views by name.
func (m *memory) Views(context.Context) ([]history.View, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := slices.Clone(m.views)
	slices.SortStableFunc(list, func(a, b history.View) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// SaveView writes a view.
func (m *memory) SaveView(_ context.Context, v history.View) (history.View, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.ID == "" && len(m.views) >= history.MaxViews {
		return v, history.ErrTooManyViews
	}
	if v.ID == "" {
		m.last++
		v.ID = strconv.Itoa(m.last)
		m.views = append(m.views, v)
		return v, nil
	}
	i := slices.IndexFunc(m.views, func(old history.View) bool { return old.ID == v.ID })
	if i < 0 {
		return v, history.ErrNotFound
	}
	m.views[i] = v
	return v, nil
}

// DeleteView removes a view.
func (m *memory) DeleteView(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.views, func(v history.View) bool { return v.ID == id })
	if i < 0 {
		return history.ErrNotFound
	}
	m.views = slices.Delete(m.views, i, i+1)
	return nil
}

// Values returns nothing: all values are in the cluster.
func (m *memory) Values(context.Context, query.Field, string, int) ([]string, error) { return nil, nil }
