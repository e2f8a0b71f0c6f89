package view

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/query"
)

// maxFailedThen is how many failed tasks the groups of an instant are made of: those that changed last.
const maxFailedThen = 5_000

// groupsThen are the groups of failures at an instant, read once.
type groupsThen struct {
	mu    sync.Mutex
	known bool
	list  []history.FailureGroup
	ends  map[fingerprint.ID][]int64 // when the tasks of each failed, µs
}

// failureGroups returns all groups at the instant.
func (p *Past) failureGroups(ctx context.Context) ([]history.FailureGroup, error) {
	p.groups.mu.Lock()
	defer p.groups.mu.Unlock()
	if p.groups.known {
		return slices.Clone(p.groups.list), nil
	}
	g := grouping{at: p.Instant(), all: make(map[fingerprint.ID]*history.FailureGroup), ends: make(map[fingerprint.ID][]int64)}
	r := history.TaskRequest{Query: query.New(query.Equal(query.State, string(state.Failure))), Limit: maxPage, Now: g.at}
	for {
		page, err := p.Tasks(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("group failures: %w", err)
		}
		for i := range page.Tasks {
			g.add(&page.Tasks[i])
		}
		if r.From = page.Next; r.From == nil || g.n >= maxFailedThen {
			break
		}
	}
	resolved, err := p.store.ResolvedFailures(ctx)
	if err != nil {
		return nil, err
	}
	for id, f := range g.all {
		f.Count.Exact = r.From == nil
		if at, ok := resolved[id]; ok && !at.After(g.at) {
			f.ResolvedAt = at
		}
		p.groups.list = append(p.groups.list, *f)
	}
	p.groups.known, p.groups.ends = true, g.ends
	return slices.Clone(p.groups.list), nil
}

// grouping groups failed tasks, newest change first.
type grouping struct {
	at  time.Time
	n   int
	all map[fingerprint.ID]*history.FailureGroup

	ends map[fingerprint.ID][]int64
}

func (g *grouping) add(t *state.Task) {
	g.n++
	micros, ok := query.Finished.Int(t)
	if !ok {
		return
	}
	ended := time.UnixMicro(micros).UTC()
	print, id := fingerprint.OfTask(t)
	f := g.all[id]
	if f == nil {
		f = &history.FailureGroup{ID: id, Fingerprint: print, FirstAt: ended, Trend: make([]int64, history.TrendHours)}
		if t.Name != nil {
			f.Name = *t.Name
		}
		g.all[id] = f
	}
	f.Count.N++
	g.ends[id] = append(g.ends[id], micros)
	if ended.After(g.at.Add(-time.Hour)) {
		f.LastHour++
	}
	if ended.Before(f.FirstAt) {
		f.FirstAt = ended
	}
	if f.TaskID == "" || ended.After(f.LastAt) {
		f.LastAt, f.TaskID, f.Example = ended, t.ID, ""
		if t.Exception != nil {
			f.Example = *t.Exception
		}
	}
	last := history.TrendHours - 1
	if hour := last - int(g.at.Truncate(time.Hour).Sub(ended.Truncate(time.Hour))/time.Hour); hour >= 0 {
		f.Trend[min(hour, last)]++ // the clocks of workers may be ahead
	}
}

// FailureGroups returns the groups of the instant. Of groups that were resolved more than once, only the last time is known.
func (h pastHistory) FailureGroups(ctx context.Context, r history.FailureRequest) (history.FailurePage, error) {
	all, err := h.p.failureGroups(ctx)
	if err != nil {
		return history.FailurePage{}, err
	}
	if r.Spanned() {
		for i := range all {
			all[i].Within, all[i].Trend = within(h.p.groups.ends[all[i].ID], r)
		}
	}
	return r.Page(all), nil
}

// within counts the failures of a span, and of each part of it.
func within(ends []int64, r history.FailureRequest) (n int, trend []int64) {
	trend = make([]int64, history.TrendHours)
	from, part := r.TrendSpan()
	for _, micros := range ends {
		if at := time.UnixMicro(micros); !at.Before(r.From) && at.Before(r.To) {
			n++
			trend[min(int(at.Sub(from)/part), len(trend)-1)]++
		}
	}
	return n, trend
}

// FailureGroup returns one group of the instant, history.ErrNotFound if there was none.
func (h pastHistory) FailureGroup(ctx context.Context, id fingerprint.ID, _ time.Time) (history.FailureGroup, error) {
	all, err := h.p.failureGroups(ctx)
	if err != nil {
		return history.FailureGroup{}, err
	}
	if i := slices.IndexFunc(all, func(f history.FailureGroup) bool { return f.ID == id }); i >= 0 {
		return all[i], nil
	}
	return history.FailureGroup{}, history.ErrNotFound
}
