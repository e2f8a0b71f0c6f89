package flower

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"slices"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// order is that of a list. The zero value is the newest event first.
type order struct {
	by         string // a key of a task in Flower's form
	descending bool
	skip       int
	limit      int // tasks, at most maxListed
}

// take counts a task, and reports whether it is one of the list and whether more are.
func (o *order) take() (listed, more bool) {
	if o.skip > 0 {
		o.skip--
		return false, true
	}
	o.limit--
	return o.limit >= 0, o.limit > 0
}

// list calls f with the tasks that s selects, in order, until f has had all that are wanted.
func (a *API) list(ctx context.Context, s *filter, o order, f func(*state.Task)) error {
	if o.limit <= 0 {
		return nil
	}
	emit := func(t *state.Task) bool {
		listed, more := o.take()
		if listed {
			f(t)
		}
		return more
	}
	q := a.query(ctx, s)
	field, timed := map[string]query.Field{"received": query.Received, "started": query.Started, "runtime": query.Run}[o.by]
	switch {
	case o.by == "":
		return a.newestFirst(ctx, s, q, emit)
	case timed:
		return a.byTime(ctx, s, q, field, &o, emit)
	}
	return a.byText(ctx, s, q, order{by: o.by, descending: o.descending, skip: o.skip}, emit)
}

// byTime lists by a time, and tasks without it by id where Flower has them: first in ascending order, else last.
func (a *API) byTime(ctx context.Context, s *filter, q query.Query, f query.Field, o *order, emit func(*state.Task) bool) error {
	more := true
	count := func(t *state.Task) bool { more = emit(t); return more }
	known := func() error { return a.each(ctx, s, q, query.Sort{Field: f, Ascending: !o.descending}, count) }
	unknown := func() error {
		missing := query.Not{X: query.Term{Field: f, Values: []query.Value{{Match: query.Range}}}}
		return a.byText(ctx, s, q.And(query.New(missing)), order{descending: o.descending, skip: o.skip}, count)
	}
	parts := []func() error{unknown, known}
	if o.descending {
		slices.Reverse(parts)
	}
	for _, part := range parts {
		if err := part(); err != nil || !more {
			return err
		}
	}
	return nil
}

// newestFirst lists by the time of the newest event. Tasks come by their logical clocks, which is the same order but for what
// happens at once, so it is enough to compare each with the window tasks after it.
func (a *API) newestFirst(ctx context.Context, s *filter, q query.Query, emit func(*state.Task) bool) error {
	var ahead recent
	more := true
	err := a.each(ctx, s, q, query.Sort{}, func(t *state.Task) bool {
		heap.Push(&ahead, *t)
		if len(ahead) > window {
			newest := heap.Pop(&ahead).(state.Task) //nolint:forcetypeassert // all are
			more = emit(&newest)
		}
		return more
	})
	for err == nil && more && len(ahead) > 0 {
		newest := heap.Pop(&ahead).(state.Task) //nolint:forcetypeassert // all are
		more = emit(&newest)
	}
	return err
}

// recent is a heap of tasks with the newest first, and the greatest id of those of one time.
type recent []state.Task //nolint:recvcheck // as heap.Interface is

func (h recent) Len() int { return len(h) }
func (h recent) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[j].UpdatedAt, h[i].UpdatedAt), cmp.Compare(h[j].ID, h[i].ID)) < 0
}
func (h recent) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *recent) Push(x any)   { *h = append(*h, x.(state.Task)) } //nolint:forcetypeassert // all are
func (h *recent) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = state.Task{}
	*h = (*h)[:last]
	return t
}

// byText lists the newest maxListed tasks by any other key, or by id alone if there is none. It does not read those that o
// skips.
func (a *API) byText(ctx context.Context, s *filter, q query.Query, o order, emit func(*state.Task) bool) error {
	type row struct {
		id, text string
		known    bool
	}
	var rows []row
	size := 0
	err := a.each(ctx, s, q, query.Sort{}, func(t *state.Task) bool {
		text, known := sortText(t, o.by, s.payload)
		rows = append(rows, row{t.ID, text, known})
		size += len(text)
		return len(rows) < maxListed && size < maxSorted
	})
	if err != nil {
		return err
	}
	slices.SortFunc(rows, func(x, y row) int {
		order := cmp.Or(compareBool(x.known, y.known), cmp.Compare(x.text, y.text), cmp.Compare(x.id, y.id))
		if o.descending {
			return -order
		}
		return order
	})
	for _, w := range rows {
		if o.skip > 0 {
			o.skip--
			emit(nil) // counts
			continue
		}
		t, err := a.Backend.Task(ctx, w.id)
		if errors.Is(err, history.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if !emit(&t) {
			break
		}
	}
	return nil
}

// maxSorted bounds the text that is sorted, in bytes.
const maxSorted = 64 << 20

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// sortText returns the value of a key as a text to sort by, false if it is null or there is no such key.
func sortText(t *state.Task, key string, payload bool) (string, bool) {
	switch key { // the usual ones without the others
	case "name":
		if t.Name == nil {
			return "", false
		}
		return fold(*t.Name), true
	case "state":
		return fold(string(t.State)), true
	case "uuid":
		return fold(t.ID), true
	}
	for _, m := range fields(t, payload) {
		if m.key != key {
			continue
		}
		text := string(appendValue(nil, m.value))
		if s, ok := m.value.(*string); ok && s != nil {
			text = fold(*s)
		}
		return text, text != "null"
	}
	return "", false
}
