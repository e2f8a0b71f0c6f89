package query

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Request returns the request for a backend, with relative times as of now.
func (t Tasks) Request(now time.Time) history.TaskRequest {
	return history.TaskRequest{
		Query: t.Narrowed(), Sort: t.Sort, Limit: cmp.Or(t.Limit, DefaultLimit), From: t.From, Newer: t.Newer, Now: now,
	}
}

// Narrowed returns the query with the span of time, in which the newest events of tasks lie.
func (t Tasks) Narrowed() query.Query {
	if s := t.Chart.Span; s.To != 0 {
		return t.Query.And(query.New(query.Between(query.Updated, s.From*1e6, s.To*1e6)))
	}
	return t.Query
}

// Canonical returns the one spelling of the query: sorted, URL-encoded, without defaults and
// without its place in the list. Equal queries have equal canonical forms, so it names live topics
// and cache keys. The query of all tasks is empty.
func (t Tasks) Canonical() string { return strings.TrimPrefix(t.First().URL(""), "?") }

// URL returns path with the query, its place in the list included.
func (t Tasks) URL(path string) string {
	cols := make([]string, len(t.Cols))
	for i, f := range t.Cols {
		cols[i] = f.String()
	}
	params := map[string]string{
		paramText: t.Query.String(), paramSort: t.Sort.String(), paramCols: strings.Join(cols, ","), paramChart: t.Chart.String(),
		paramLimit: decimal(t.Limit), paramSpanSince: t.Chart.since(), paramSpanUntil: t.Chart.until(),
	}
	if t.Limit == DefaultLimit {
		delete(params, paramLimit)
	}
	if t.From != nil {
		params[paramCursor] = Encode(*t.From, t.Newer)
	}
	return address(path, params)
}

// address returns path with the parameters that are not empty.
func address(path string, params map[string]string) string {
	v := url.Values{}
	for name, value := range params {
		if value != "" {
			v.Set(name, value)
		}
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// decimal returns the digits of n, empty for 0.
func decimal[N int | int64](n N) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

// Filtered reports whether the query leaves any task out.
func (t Tasks) Filtered() bool { return !t.Narrowed().All() }

// First returns the query at the first page.
func (t Tasks) First() Tasks {
	t.From, t.Newer = nil, false
	return t
}

// After returns the query at the page that continues after pos, towards the top or the end of the list. With
// a nil pos, as a page has at its ends, it returns the first page.
func (t Tasks) After(pos *state.Position, newer bool) Tasks {
	t.From, t.Newer = pos, newer && pos != nil
	return t
}

// Where returns the first page of another query in the same order and with the same columns.
func (t Tasks) Where(q query.Query) Tasks {
	t.Query, t.Text = q, q.String()
	return t.First()
}

// Toggle returns the first page of the query without the term if it has it, else with it.
func (t Tasks) Toggle(term query.Term) Tasks { return t.Where(t.Query.Toggle(term)) }

// By returns the first page of the query in another order.
func (t Tasks) By(s query.Sort) Tasks {
	t.Sort = s
	return t.First()
}

// Draw returns the query with another chart.
func (t Tasks) Draw(c Chart) Tasks {
	t.Chart = c
	return t
}

// Show returns the query with other columns.
func (t Tasks) Show(cols ...query.Field) Tasks {
	t.Cols = cols
	return t
}
