package flower

import (
	"context"
	"fmt"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// maxDataTable is how many tasks are on a page at most, and how many are counted if no index tells.
const (
	maxDataTable = 10_000
	maxCounted   = 10_000
)

// datatable is a page of tasks for DataTables (https://datatables.net/manual/server-side).
func (a *API) datatable(r *request) (any, error) {
	var n [4]int
	for i, name := range []string{"draw", "start", "length", "order[0][column]"} {
		var err error
		if n[i], err = r.requiredInteger(name); err != nil {
			return nil, err
		}
	}
	draw, start, length, column := n[0], n[1], n[2], n[3]
	o := order{
		by: r.arguments[fmt.Sprintf("columns[%d][data]", column)], descending: r.arguments["order[0][dir]"] == "desc",
		skip: max(start, 0), limit: min(length, maxDataTable),
	}
	ctx, cancel := context.WithTimeout(r.Context(), listTimeout)
	defer cancel()
	total := a.count(ctx, &filter{})
	s := &filter{payload: r.payload()}
	var err error
	if s.search, err = searchOf(r.arguments["search[value]"], s.payload); err != nil {
		return object{
			{"draw", draw}, {"data", []object{}}, {"recordsTotal", total}, {"recordsFiltered", 0}, {"searchError", err.Error()},
		}, nil
	}
	tasks := []object{}
	if err := a.list(ctx, s, o, func(t *state.Task) { tasks = append(tasks, fields(t, s.payload)) }); err != nil {
		return nil, err
	}
	filtered := total
	if s.search != nil {
		filtered = a.count(ctx, s)
	}
	return object{{"draw", draw}, {"data", tasks}, {"recordsTotal", total}, {"recordsFiltered", filtered}}, nil
}

// count returns how many tasks s selects. It is exact up to maxCounted, and a lower bound above, or where it would take long.
func (a *API) count(ctx context.Context, s *filter) int {
	if s.exact() {
		ctx, cancel := context.WithTimeout(ctx, countTimeout)
		defer cancel()
		if n, err := a.Backend.Count(ctx, a.query(ctx, s)); err == nil {
			return n.N
		}
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout/4)
	defer cancel()
	n := 0
	_ = a.each(ctx, s, a.query(ctx, s), query.Sort{}, func(*state.Task) bool { // what was counted until then
		n++
		return n < maxCounted
	})
	return n
}
