package query

import (
	"net/url"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

const paramOutbox = "outbox"

// Measures of the chart of an application's outbox, the default first.
const (
	MeasureReady = "ready"
	MeasureAge   = "age"
	MeasureDead  = "dead"
)

// OutboxMeasures returns what the chart of an application's outbox may show, the default first.
func OutboxMeasures() []string { return []string{MeasureReady, MeasureAge, MeasureDead} }

// OutboxRanges returns how far the chart of an application's outbox may go back.
func OutboxRanges() []string { return Ranges()[:4] }

// AppOutbox selects a page of an application's outbox, or of its dead letters.
type AppOutbox struct {
	Outbox string            // its name, empty for the first one
	State  outboxwatch.State // empty for all
	Name   string            // of the task; a * at its end stands for any text
	Chart  Chart
	Limit  int    // 1 to MaxLimit; 0 means DefaultLimit
	Cursor string // empty for the first page
}

// ParseAppOutbox reads a query from URL parameters as Parse does.
func ParseAppOutbox(v url.Values) (AppOutbox, error) {
	p := parser{values: v}
	q := AppOutbox{
		Outbox: p.short(paramOutbox), Name: p.short(paramName), Limit: p.limit(), Cursor: p.short(paramCursor),
		State: outboxwatch.State(strings.ToLower(p.one(paramState))),
	}
	if states := outboxwatch.States(); q.State != "" && !slices.Contains(states[:], q.State) {
		p.fail(paramState, "must be pending, in_flight, stale, deferred, due or other_schema")
		q.State = ""
	}
	if text := p.one(paramChart); text != "" {
		var err *Error
		if q.Chart, err = parseChart(text, OutboxRanges(), OutboxMeasures(), nil); err != nil {
			p.fail(paramChart, err.Message)
		}
	}
	q.Chart.Span = p.span()
	return q, p.failed()
}

// First returns the query without its place in the list.
func (q AppOutbox) First() AppOutbox {
	q.Cursor = ""
	return q
}

// URL returns path with the parameters that select the same page, in one spelling.
func (q AppOutbox) URL(path string) string {
	return address(path, map[string]string{
		paramOutbox: q.Outbox, paramState: string(q.State), paramName: q.Name, paramChart: q.Chart.String(),
		paramSpanSince: q.Chart.since(), paramSpanUntil: q.Chart.until(),
		paramLimit: decimal(int64(q.Limit)), paramCursor: q.Cursor,
	})
}
