package query

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

const (
	paramOutcome = "outcome"
	paramSince   = "from"
	paramUntil   = "to"
)

// Audit selects a page of the audit log. The zero value selects the newest records.
type Audit struct {
	Kind        history.AuditKind
	Outcome     history.AuditOutcome
	Actor       string
	Since       string // as ParseMoment reads it, empty if there is no bound
	Until       string
	Limit       int   // 1 to MaxLimit; 0 means DefaultLimit
	Before      int64 // the page continues after this record; 0 means the first page
	since, till time.Time
}

// ParseAudit reads a query from URL parameters as Parse does. Relative times are from now.
func ParseAudit(v url.Values, now time.Time) (Audit, error) {
	p := parser{values: v}
	q := Audit{
		Kind: history.AuditKind(p.one(paramKind)), Outcome: history.AuditOutcome(p.one(paramOutcome)), Actor: p.short(paramActor),
		Since: p.one(paramSince), Until: p.one(paramUntil), Limit: p.limit(), Before: p.number(paramCursor),
	}
	if q.Kind != "" && !slices.Contains(history.AuditKinds(), q.Kind) {
		p.fail(paramKind, "must be "+joined(history.AuditKinds()))
	}
	if q.Outcome != "" && !slices.Contains(history.AuditOutcomes(), q.Outcome) {
		p.fail(paramOutcome, "must be "+joined(history.AuditOutcomes()))
	}
	q.since = p.bound(paramSince, q.Since, now)
	q.till = p.bound(paramUntil, q.Until, now)
	return q, p.failed()
}

// bound reads a time, zero if there is none.
func (p *parser) bound(param, s string, now time.Time) time.Time {
	if s == "" {
		return time.Time{}
	}
	t, err := ParseMoment(param, s, now)
	if err != nil {
		p.fail(param, "must be a time such as 2026-11-21T10:00:00Z, or an offset from now such as -24h")
	}
	return t
}

func joined[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

// Filter returns the query as a store takes it.
func (q Audit) Filter() history.AuditFilter {
	return history.AuditFilter{
		Kind: q.Kind, Outcome: q.Outcome, Actor: q.Actor, From: q.since, To: q.till, Before: q.Before, Limit: cmp.Or(q.Limit, DefaultLimit),
	}
}

// First returns the query without its place in the list.
func (q Audit) First() Audit {
	q.Before = 0
	return q
}

// URL returns path with the parameters that select the same page, in one spelling.
func (q Audit) URL(path string) string {
	return address(path, map[string]string{
		paramKind: string(q.Kind), paramOutcome: string(q.Outcome), paramActor: q.Actor, paramSince: q.Since, paramUntil: q.Until,
		paramLimit: decimal(q.Limit), paramCursor: decimal(q.Before),
	})
}
