package schedules

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Bounds of what Read looks at.
const (
	MaxNames        = 500
	MaxTasksPerName = 100
)

// Source is what schedules are read from.
type Source interface {
	View(f func(c state.View))
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
}

// Values lists the names of tasks.
type Values interface {
	Values(ctx context.Context, f query.Field, part string, limit int) ([]string, error)
}

// Result is what Read has found.
type Result struct {
	Schedules []Schedule // those that are late first, then by name
	Cut       bool       // there are more names of tasks than MaxNames
	// Newest is when the newest task of each name was sent that no other task has sent, µs since 1970 UTC.
	Newest map[string]int64
}

// Read learns the schedules of all tasks, from the newest tasks of each name.
func Read(ctx context.Context, s Source, v Values, now time.Time) (r Result, err error) {
	names, err := v.Values(ctx, query.Name, "", MaxNames+1)
	if err != nil {
		return r, fmt.Errorf("names of tasks: %w", err)
	}
	s.View(func(c state.View) {
		for name := range c.Counts().ByName {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	names = slices.Compact(names)
	if r.Cut = len(names) > MaxNames; r.Cut {
		names = names[:MaxNames]
	}
	r.Newest = make(map[string]int64, len(names))
	for _, name := range names {
		if name == "" {
			continue
		}
		page, err := s.Tasks(ctx, history.TaskRequest{Query: query.New(query.Equal(query.Name, name)), Limit: MaxTasksPerName, Now: now})
		if err != nil {
			return r, fmt.Errorf("newest tasks %s: %w", name, err)
		}
		for i := range page.Tasks {
			if t := &page.Tasks[i]; t.ParentID == nil {
				r.Newest[name] = max(r.Newest[name], at(t))
			}
		}
		r.Schedules = append(r.Schedules, Learn(page.Tasks)...)
	}
	micros := now.UnixMicro()
	slices.SortStableFunc(r.Schedules, func(a, b Schedule) int {
		return cmp.Or(cmp.Compare(rank(a.Status(micros)), rank(b.Status(micros))), cmp.Compare(a.Name, b.Name))
	})
	return r, nil
}

func rank(s Status) int { return slices.Index([]Status{Late, OnTime, Ended}, s) }
