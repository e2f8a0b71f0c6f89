package flower

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/auth"
)

// listRoutes adds lists of tasks.
func (a *API) listRoutes() {
	a.add(http.MethodGet, "/api/tasks", auth.View, a.tasks)
	a.add(http.MethodGet, "/tasks/datatable", auth.View, a.datatable)
	a.add(http.MethodPost, "/tasks/datatable", auth.View, a.datatable)
}

// stream is a body that is written as it is read.
type stream func(ctx context.Context, write func(key string, value object) error) error

// tasks lists tasks as one object, by id, in their order.
func (a *API) tasks(r *request) (any, error) {
	o, err := listOrder(r)
	if err != nil {
		return nil, err
	}
	s, err := a.listFilter(r)
	if err != nil {
		return nil, err
	}
	a.countTotal(r, s)
	return stream(func(ctx context.Context, write func(string, object) error) error {
		var failed error
		err := a.list(ctx, s, o, func(t *state.Task) {
			if failed == nil {
				failed = write(t.ID, listed(fields(t, s.payload)))
			}
		})
		return errors.Join(err, failed)
	}), nil
}

// listed moves the worker to the end, and leaves an unknown one out.
func listed(o object) object {
	for i, m := range o {
		if m.key != "worker" {
			continue
		}
		o = append(o[:i], o[i+1:]...)
		if worker, ok := m.value.(*string); ok && worker != nil {
			o = append(o, m)
		}
		break
	}
	return o
}

// listOrder reads limit, offset and sort_by.
func listOrder(r *request) (o order, err error) {
	o.limit = maxListed
	if r.arguments["limit"] != "" {
		if o.limit, err = r.integer("limit", 0); err != nil {
			return o, err
		}
	}
	if o.skip, err = r.integer("offset", 0); err != nil {
		return o, err
	}
	o.limit, o.skip = min(o.limit, maxListed), max(o.skip, 0)
	by := r.arguments["sort_by"]
	o.by = strings.TrimLeft(by, "-")
	o.descending = o.by != by
	switch o.by {
	case "", "name", "received", "started", "state":
		if by == "" || o.by != "" {
			return o, nil
		}
	}
	return o, &failure{http.StatusBadRequest, "Invalid sort_by '" + by + "', expected one of name, received, started, state"}
}

// listFilter reads what tasks are wanted.
func (a *API) listFilter(r *request) (*filter, error) {
	s := &filter{
		name: all(r.arguments["taskname"]), worker: all(r.arguments["workername"]), state: all(r.arguments["state"]), payload: r.payload(),
	}
	var err error
	if s.search, err = searchOf(r.arguments["search"], s.payload); err != nil {
		return nil, &invalid{err.Error()}
	}
	for _, bound := range []struct {
		name string
		to   **float64
	}{
		{"received_start", &s.receivedStart},
		{"received_end", &s.receivedEnd},
		{"started_start", &s.startedStart},
		{"started_end", &s.startedEnd},
	} {
		text := r.arguments[bound.name]
		if text == "" {
			continue
		}
		at, ok := parseMinute(text, a.Location)
		if !ok {
			pair, _, _ := strings.Cut(bound.name, "_")
			return nil, &failure{http.StatusBadRequest, "Invalid " + pair + "_start or " + pair + "_end, expected format 'YYYY-MM-DD HH:MM'"}
		}
		*bound.to = new(float64(at.Unix()))
	}
	return s, nil
}

// all is what a filter asks for: Flower's pages send All for any.
func all(s string) string {
	if s == "All" {
		return ""
	}
	return s
}

// parseMinute reads a time as Python's strptime does with %Y-%m-%d %H:%M, which takes single digits too.
func parseMinute(text string, zone *time.Location) (time.Time, bool) {
	date, clock, ok := strings.Cut(text, " ")
	parts := append(strings.Split(date, "-"), strings.Split(strings.TrimLeft(clock, " "), ":")...)
	if !ok || len(parts) != 5 || strings.Count(date, "-") != 2 || len(parts[0]) != 4 {
		return time.Time{}, false
	}
	var n [5]int
	for i, part := range parts {
		var err error
		if n[i], err = strconv.Atoi(part); err != nil || i > 0 && len(part) > 2 || strings.ContainsAny(part, "+-") {
			return time.Time{}, false
		}
	}
	at := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], 0, 0, zone)
	if n[0] < 1 || n[1] < 1 || n[1] > 12 || n[2] < 1 || n[3] > 23 || n[4] > 59 || time.Date(n[0], time.Month(n[1]), n[2], 0, 0, 0, 0, time.UTC).Day() != n[2] {
		return time.Time{}, false
	}
	return at, true
}

// countTotal says how many tasks match in X-Total-Count, which Flower does not have, unless that takes long.
func (a *API) countTotal(r *request, s *filter) {
	if !s.exact() {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), countTimeout)
	defer cancel()
	if n, err := a.Backend.Count(ctx, a.query(ctx, s)); err == nil && n.Exact {
		r.header.Set("X-Total-Count", strconv.Itoa(n.N))
	}
}

// countTimeout is how long an answer waits for a count.
const countTimeout = 500 * time.Millisecond
