package query

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/tasktype"
)

const (
	paramFind  = "find"
	paramLast  = "last"
	paramAfter = "after"
)

// Defaults of lists of task types.
const (
	DefaultTypesLast = "24h"
	DefaultTypesSort = "-run" // the slowest first
)

// Types selects a page of the list of task types. The zero value selects those of the last 24 hours, the slowest first.
type Types struct {
	Find  string // words that names contain
	Last  string // one of Ranges; empty means DefaultTypesLast
	Span         // counted instead of Last, if there is one
	Sort  string // one of tasktype.SortKeys, with - before it for the greatest first; empty means DefaultTypesSort
	Limit int    // 1 to MaxLimit; 0 means DefaultLimit
	After string // name that the page starts after; empty means the first page
}

// ParseTypes reads a query from URL parameters as Parse does.
func ParseTypes(v url.Values) (Types, error) {
	p := parser{values: v}
	t := Types{Find: strings.TrimSpace(p.one(paramFind)), Last: p.last(), Span: p.span(), Sort: p.typesSort(), Limit: p.limit(), After: p.one(paramAfter)}
	if len(t.Find) > maxValue {
		p.fail(paramFind, "must be at most "+strconv.Itoa(maxValue)+" bytes long")
	}
	if len(t.After) > maxValue {
		p.fail(paramAfter, "must be at most "+strconv.Itoa(maxValue)+" bytes long")
	}
	return t, p.failed()
}

func (p *parser) last() string {
	s := p.one(paramLast)
	if s != "" && !slices.Contains(Ranges(), s) {
		p.fail(paramLast, "must be one of "+strings.Join(Ranges(), ", "))
	}
	if s == DefaultTypesLast {
		return ""
	}
	return s
}

func (p *parser) typesSort() string {
	s := p.one(paramSort)
	if s != "" && !slices.Contains(tasktype.SortKeys(), strings.TrimPrefix(s, "-")) {
		p.fail(paramSort, "must be one of "+strings.Join(tasktype.SortKeys(), ", ")+", with a leading - for descending order")
	}
	if s == DefaultTypesSort {
		return ""
	}
	return s
}

// Range is the span of time that the list covers, as of now.
func (t Types) Range(now time.Time) tasktype.Span {
	c := Chart{Last: cmp.Or(t.Last, DefaultTypesLast), Span: t.Span}
	from, to := c.Range(now)
	return tasktype.Span{From: from, To: to, Now: now}
}

// Order is the order of the list.
func (t Types) Order() string { return cmp.Or(t.Sort, DefaultTypesSort) }

// Match reports whether a name contains every word of Find, regardless of case.
func (t Types) Match(name string) bool {
	name = strings.ToLower(name)
	for word := range strings.FieldsSeq(strings.ToLower(t.Find)) {
		if !strings.Contains(name, word) {
			return false
		}
	}
	return true
}

// Page returns the rows of the page, sorted, how many match in all, and whether more follow.
func (t Types) Page(all []tasktype.Row) (page []tasktype.Row, matches int, more bool) {
	for i := range all {
		if t.Match(all[i].Name) {
			page = append(page, all[i])
		}
	}
	matches = len(page)
	tasktype.Sort(page, t.Order())
	if t.After != "" {
		i := slices.IndexFunc(page, func(r tasktype.Row) bool { return r.Name == t.After })
		page = page[i+1:]
	}
	limit := cmp.Or(t.Limit, DefaultLimit)
	if len(page) > limit && page[limit-1].Name == "" {
		limit++ // After cannot name it
	}
	if len(page) > limit {
		return page[:limit], matches, true
	}
	return page, matches, false
}

// URL returns path with the parameters that select the same page, in one spelling.
func (t Types) URL(path string) string {
	return address(path, map[string]string{
		paramFind: t.Find, paramLast: t.Last, paramSort: t.Sort, paramLimit: decimal(t.Limit), paramAfter: t.After,
		paramSpanSince: t.since(), paramSpanUntil: t.until(),
	})
}
