// Package shelf gives tests of pages and answers a history to show: the tasks of a cluster in memory, found
// as a monitor with a store finds them, but slowly and with nothing that could fail.
package shelf

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Fake answers what a backend is asked beside its cluster. It is safe for concurrent use where view is.
type Fake struct {
	view  func(f func(c state.View))
	store history.Store
}

// New returns the history of a cluster that view shows.
func New(view func(f func(c state.View))) *Fake {
	h := &Fake{view: view}
	h.store = &memory{match: h.match}
	return h
}

// Tasks returns a page of the tasks that match. The cluster answers what it can.
func (h *Fake) Tasks(_ context.Context, r history.TaskRequest) (history.TaskPage, error) {
	if q, ok := r.Query.Simple(); ok && r.Sort == (query.Sort{}) {
		q.Limit, q.From, q.Newer = r.Limit, r.From, r.Newer
		var found state.Page
		h.view(func(c state.View) { found = c.Tasks(q) })
		return history.TaskPage{Tasks: found.Tasks, Next: found.Older, Prev: found.Newer}, nil
	}
	list := h.match(r.Query, r.Now)
	if r.Sort.Field != 0 {
		list = slices.DeleteFunc(list, func(t state.Task) bool { _, known := value(&t, r.Sort.Field); return !known })
	}
	slices.SortFunc(list, func(a, b state.Task) int { return compare(&a, &b, r.Sort) })
	from, to := 0, len(list)
	if r.From != nil {
		i, found := slices.BinarySearchFunc(list, *r.From, func(t state.Task, p state.Position) int {
			return compareTo(&t, p, r.Sort)
		})
		if r.Newer {
			to = i
		} else if from = i; found {
			from++
		}
	}
	limit := cmp.Or(r.Limit, 50)
	if r.Newer {
		from = max(from, to-limit)
	}
	to = min(to, from+limit)
	page := history.TaskPage{Tasks: list[from:to]}
	if from > 0 && from < to {
		page.Prev = new(position(&list[from], r.Sort))
	}
	if to < len(list) && from < to {
		page.Next = new(position(&list[to-1], r.Sort))
	}
	return page, nil
}

func (h *Fake) match(q query.Query, now time.Time) []state.Task {
	var list []state.Task
	h.view(func(c state.View) {
		for from := (*state.Position)(nil); ; {
			page := c.Tasks(state.Query{Limit: 500, From: from})
			for _, t := range page.Tasks {
				if q.Match(&t, now) {
					list = append(list, t)
				}
			}
			if from = page.Older; from == nil {
				return
			}
		}
	})
	return list
}

// Task returns a task, history.ErrMissing if there is none.
func (h *Fake) Task(_ context.Context, id string) (t state.Task, err error) {
	h.view(func(c state.View) {
		var held bool
		if t, held = c.Task(id); !held {
			err = history.ErrNotFound
		}
	})
	return t, err
}

// TaskEvents returns the events of a task, history.ErrMissing if there is none.
func (h *Fake) TaskEvents(_ context.Context, id string) (events []state.TaskEvent, err error) {
	h.view(func(c state.View) { events = c.TaskEvents(id) })
	if events == nil {
		err = history.ErrNotFound
	}
	return events, err
}

// Count returns how many tasks match, exactly up to 10,000.
func (h *Fake) Count(_ context.Context, q query.Query) (history.Count, error) {
	const most = 10_000
	if simple, ok := q.Simple(); ok {
		var total *int
		h.view(func(c state.View) { total = c.Tasks(simple).Total })
		if total != nil {
			return history.Count{N: *total, Exact: true}, nil
		}
	}
	n := len(h.match(q, time.Now()))
	return history.Count{N: min(n, most), Exact: n <= most}, nil
}

// Store returns a store of its own, which keeps nothing when the test ends.
func (h *Fake) Store() history.Store { return h.store }

// History is Store as pages read it.
func (h *Fake) History() view.History { return h.store }
