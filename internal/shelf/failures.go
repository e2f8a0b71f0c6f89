package shelf

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/query"
)

// FailureGroups returns the groups of the failed tasks of the cluster.
func (m *memory) FailureGroups(_ context.Context, r history.FailureRequest) (history.FailurePage, error) {
	var all []history.FailureGroup
	for _, f := range m.groups(r.Now) {
		all = append(all, *f)
	}
	return r.Page(all), nil
}

// FailureGroup returns one group, history.ErrMissing if there is none.
func (m *memory) FailureGroup(_ context.Context, id fingerprint.ID, now time.Time) (history.FailureGroup, error) {
	if f, ok := m.groups(now)[id]; ok {
		return *f, nil
	}
	return history.FailureGroup{}, history.ErrNotFound
}

// ResolveFailureGroup marks a group as resolved, or reopens it.
func (m *memory) ResolveFailureGroup(_ context.Context, id fingerprint.ID, at time.Time) error {
	if _, ok := m.groups(at)[id]; !ok {
		return history.ErrNotFound
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.resolved == nil {
		m.resolved = map[fingerprint.ID]time.Time{}
	}
	m.resolved[id] = at
	return nil
}

func (m *memory) groups(now time.Time) map[fingerprint.ID]*history.FailureGroup {
	groups := map[fingerprint.ID]*history.FailureGroup{}
	failed, _ := query.Parse("state:failure")
	for _, t := range m.match(failed, now) {
		common, id := fingerprint.OfTask(&t)
		f, ok := groups[id]
		if !ok {
			f = &history.FailureGroup{ID: id, Fingerprint: common, Trend: make([]int64, history.TrendHours), Count: history.Count{Exact: true}}
			groups[id] = f
		}
		m.count(f, &t, now)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, f := range groups {
		f.ResolvedAt = m.resolved[id]
	}
	return groups
}

func (m *memory) count(f *history.FailureGroup, t *state.Task, now time.Time) {
	at := time.UnixMicro(t.FailedAt).UTC()
	if f.Count.N++; f.Count.N == 1 || at.Before(f.FirstAt) {
		f.FirstAt = at
	}
	if f.Count.N == 1 || at.After(f.LastAt) {
		f.LastAt, f.TaskID = at, t.ID
		if t.Name != nil {
			f.Name = *t.Name
		}
		if t.Exception != nil {
			f.Example = *t.Exception
		}
	}
	if at.After(now.Add(-time.Hour)) {
		f.LastHour++
	}
	ago := int(now.Truncate(time.Hour).Add(time.Hour).Sub(at) / time.Hour)
	if ago < history.TrendHours {
		f.Trend[history.TrendHours-1-max(ago, 0)]++
	}
}
