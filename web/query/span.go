package query

import (
	"net/url"
	"time"

	"github.com/umbelhq/umbel/state/query"
)

const (
	paramSpanSince = "since"
	paramSpanUntil = "until"
)

// maxSpan is how long counters are kept.
const maxSpan = 400 * 24 * time.Hour

// Span is the parameters since and until: the one span of time that a page shows, charts and lists alike.
type Span struct{ From, To int64 } // Unix seconds; To is 0 if there is none

// ParseSpan reads the parameters. The error is an *Error.
func ParseSpan(v url.Values) (Span, error) {
	p := parser{values: v}
	s := p.span()
	return s, p.failed()
}

func (p *parser) span() Span {
	since, until := p.one(paramSpanSince), p.one(paramSpanUntil)
	if since == "" && until == "" {
		return Span{}
	}
	s := Span{p.second(paramSpanSince, since), p.second(paramSpanUntil, until)}
	if s.To <= s.From {
		p.fail(paramSpanUntil, "must be after since, and neither can be alone")
		return Span{}
	}
	if s.To-s.From > int64(maxSpan/time.Second) {
		p.fail(paramSpanUntil, "must be at most 400 days after since")
		return Span{}
	}
	return s
}

// second reads a moment, which is no relative one: whoever opens the address later sees the same.
func (p *parser) second(param, text string) int64 {
	at, err := ParseInstant(text, time.Time{})
	if text == "" || text == "now" || err != nil {
		p.fail(param, "must be a time such as 2026-11-21T10:00:00Z")
		return 0
	}
	return at.Unix()
}

func (s Span) since() string { return s.text(s.From) }

func (s Span) until() string { return s.text(s.To) }

func (s Span) text(second int64) string {
	if s.To == 0 {
		return ""
	}
	return time.Unix(second, 0).UTC().Format(time.RFC3339)
}

// Chosen reports whether there is a span.
func (s Span) Chosen() bool { return s.To != 0 }

// Times returns its ends, zero if there is no span.
func (s Span) Times() (from, to time.Time) {
	if !s.Chosen() {
		return from, to
	}
	return time.Unix(s.From, 0).UTC(), time.Unix(s.To, 0).UTC()
}

// Finished finds the tasks that came to their end in the span, all if there is none.
func (s Span) Finished() query.Query {
	if !s.Chosen() {
		return query.Query{}
	}
	return query.New(query.Between(query.Finished, s.From*1e6, s.To*1e6))
}

// URL returns path with the chart and its span, as far as they are not the usual ones.
func (c Chart) URL(path string) string {
	return address(path, map[string]string{paramChart: c.String(), paramSpanSince: c.since(), paramSpanUntil: c.until()})
}

// SpanOf returns the parameters of the span of time in an address, empty if it has none.
func SpanOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	s, err := ParseSpan(u.Query())
	if err != nil || s.To == 0 {
		return ""
	}
	return url.Values{paramSpanSince: {s.since()}, paramSpanUntil: {s.until()}}.Encode()
}
