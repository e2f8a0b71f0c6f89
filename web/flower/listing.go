package flower

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const (
	maxListed   = 100_000          // tasks of a list, as many as Flower remembers
	pageSize    = 500              // tasks read at once
	window      = 1_000            // tasks among which the order of lists is that of their times
	listTimeout = 20 * time.Second // of reading a list
)

// filter selects tasks. The zero value selects all.
type filter struct {
	name, worker, state        string   // exactly, but for case; empty for any
	receivedStart, receivedEnd *float64 // seconds since 1970, inclusive; tasks that were not received pass
	startedStart, startedEnd   *float64
	search                     expression
	payload                    bool // whether arguments and results may be searched

	built *query.Query // that query returned
}

// matches reports whether a task is selected.
func (f *filter) matches(t *state.Task) bool {
	equal := func(have *string, want string) bool { return want == "" || have != nil && fold(*have) == fold(want) }
	at := newTimes(t)
	return equal(t.Name, f.name) && equal(t.Worker, f.worker) && (f.state == "" || fold(string(t.State)) == fold(f.state)) &&
		within(at.ReceivedAt, f.receivedStart, f.receivedEnd) && within(at.StartedAt, f.startedStart, f.startedEnd) &&
		(f.search == nil || newDocument(t, f.payload).matches(f.search))
}

// within reports whether a time is unknown or within bounds.
func within(micros int64, start, end *float64) bool {
	at := float64(micros) / 1e6
	return micros == 0 || (start == nil || at >= *start) && (end == nil || at <= *end)
}

// query returns a query that selects all tasks that the filter selects, and as few others as an index can tell.
func (a *API) query(ctx context.Context, f *filter) query.Query {
	if f.built != nil {
		return *f.built
	}
	list := query.And{}
	var names, workers []string
	n := narrowing{ids: a.idsWith(ctx)}
	a.Backend.View(func(c state.View) {
		names = c.Names()
		for _, w := range c.Workers() {
			workers = append(workers, w.Name)
		}
		for s := range c.Counts().ByState {
			n.states = append(n.states, string(s))
		}
	})
	list = append(list, spellings(query.Name, f.name, names)...)
	list = append(list, spellings(query.Worker, f.worker, workers)...)
	if f.state != "" {
		list = append(list, query.Equal(query.State, strings.ToUpper(f.state)))
	}
	list = append(list, bounds(query.Received, f.receivedStart, f.receivedEnd)...)
	list = append(list, bounds(query.Started, f.startedStart, f.startedEnd)...)
	if e := n.expression(f.search); e != nil {
		list = append(list, e)
	}
	f.built = new(query.New(list))
	return *f.built
}

// exact reports whether no task that the query selects is left out by the filter.
func (f *filter) exact() bool {
	return f.search == nil && f.receivedStart == nil && f.receivedEnd == nil && f.startedStart == nil && f.startedEnd == nil && f.name == "" ||
		f.onlyState()
}

// onlyState reports whether nothing but a state is asked for.
func (f *filter) onlyState() bool {
	t, ok := f.search.(term)
	rest := *f
	rest.search, rest.state = nil, ""
	return ok && t.field == "state" && rest == (filter{payload: f.payload})
}

// spellings returns a condition on a name, but for case: that it is one of those known, or one that contains it.
func spellings(f query.Field, name string, known []string) []query.Expr {
	if name == "" {
		return nil
	}
	known = slices.DeleteFunc(known, func(s string) bool { return fold(s) != fold(name) })
	if len(known) == 0 {
		return []query.Expr{contains(f, name)}
	}
	return []query.Expr{query.Equal(f, known...)}
}

// bounds leaves out the tasks that are known to lie outside of a range.
func bounds(f query.Field, start, end *float64) (list []query.Expr) {
	if start != nil && !math.IsNaN(*start) {
		list = append(list, query.Not{X: query.Term{Field: f, Values: []query.Value{{Match: query.Range, Max: query.Bound{Set: true, Exclusive: true, N: micros(*start)}}}}})
	}
	if end != nil && !math.IsNaN(*end) {
		list = append(list, query.Not{X: query.Term{Field: f, Values: []query.Value{{Match: query.Range, Min: query.Bound{Set: true, Exclusive: true, N: micros(*end)}}}}})
	}
	return list
}

func micros(seconds float64) int64 { return int64(math.Max(-9e18, math.Min(9e18, seconds*1e6))) }

func contains(f query.Field, text string) query.Expr {
	return query.Term{Field: f, Values: []query.Value{{Match: query.Contains, Text: text}}}
}

// each calls f with the tasks that a filter selects, in the order of sort, until f returns false, maxListed were seen, or ctx
// ends.
func (a *API) each(ctx context.Context, s *filter, q query.Query, sort query.Sort, f func(*state.Task) bool) error {
	request := history.TaskRequest{Query: q, Sort: sort, Limit: pageSize, Now: a.Now()}
	for {
		page, err := a.Backend.Tasks(ctx, request)
		if err != nil {
			return err
		}
		for i := range page.Tasks {
			if s.matches(&page.Tasks[i]) && !f(&page.Tasks[i]) {
				return nil
			}
		}
		if page.Next == nil {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		request.From = page.Next
	}
}
