package sqlite

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state/query"
)

// limits bound what one search does, and groups of failures.
type limits struct {
	gather  int // rows of a plan up to which it is used, whatever the order of the list
	scan    int // rows of a plan that are counted to compare it with others
	page    int // rows that a page examines
	count   int // rows that a count examines
	lookups int // rows that a count examines if each is on another page of the file
	decoded int // tasks that are decoded to check what SQL cannot
	chunk   int // minimum of rows to read at once where each is checked by a search of texts

	groups   int // of failures
	failures int // that are counted of one group
}

func defaultLimits() limits {
	return limits{
		gather: 10_000, scan: 400_000, page: 50_000, count: 100_000, lookups: 10_000, decoded: 4_000, chunk: 1_000,
		groups: history.MaxFailureGroups, failures: history.MaxFailureCount,
	}
}

// newSearch chooses the source of rows: the plan that finds fewest; if that finds many, an index in the order of the list, of
// which few rows are read before a page is full. A count reads any plan in place of that.
func newSearch(ctx context.Context, q tables.Reader, r history.TaskRequest, l limits, counting bool) (*search, error) {
	s := &search{q: q, limits: l, r: r, o: newOrder(r.Sort, r.Newer), exact: true}
	s.rowCursor = rowCursor{q: q, o: s.o}
	if r.From != nil {
		s.start(s.o.keyOf(*r.From))
	}
	c := &compiler{q: q, now: r.Now}
	conditions := []query.Expr{r.Query.Expr()}
	if all, ok := conditions[0].(query.And); ok {
		conditions = all
	}
	compiled := make([]where.Condition, len(conditions))
	for i, e := range conditions {
		var err error
		if compiled[i], err = c.expr(ctx, e); err != nil {
			return nil, err
		}
		s.exact = s.exact && compiled[i].Exact
	}
	if r.Until != 0 {
		compiled = append(compiled, where.Exactly("+"+lastReceipt+" <= ? AND (lost IS NULL OR lost <= ?)", r.Until, r.Until))
	}
	plans, err := c.plans(ctx, conditions)
	if err != nil {
		return nil, err
	}
	best, err := s.fewest(ctx, plans, compiled, counting)
	switch {
	case err != nil:
		return nil, err
	case best != nil && best.size <= l.gather || best != nil && counting && s.exact:
		s.sources, s.check = best.sources, uncovered(compiled, best)
		switch {
		case s.o.column != "" || !indexed(best.sources):
			s.chunk = best.size // all at once
		case !best.sorted():
			s.chunk = l.chunk
		}
	case s.o.column != "":
		s.byColumn(conditions, compiled)
	case best != nil && best.ranged():
		s.sources, s.check, s.chunk, s.ranged = best.sources, uncovered(compiled, best), l.chunk, true
		if !s.check.IsTrue() {
			s.chunk *= 4
		}
	default:
		s.byClock(plans, compiled)
	}
	return s, nil
}

// uncovered returns the conditions that a plan leaves to be checked.
func uncovered(compiled []where.Condition, p *plan) where.Condition {
	var left []where.Condition
	for i, c := range compiled {
		if !slices.Contains(p.covers, i) && !c.IsTrue() {
			left = append(left, c)
		}
	}
	return where.And(left...)
}

// fewest returns the plan that finds fewest rows, nil if all find many. A count stops at its limit, so it prefers a plan that
// leaves nothing to be checked.
func (s *search) fewest(ctx context.Context, plans []plan, compiled []where.Condition, counting bool) (best *plan, err error) {
	fewest := s.limits.scan + 1
	for i := range plans {
		p, most := &plans[i], fewest
		whole := uncovered(compiled, p).IsTrue()
		if whole && counting && s.exact && p.match == nil {
			p.size = most
			return p, nil
		}
		if whole && p.sorted() || !p.sorted() && !p.ranged() || s.o.column != "" {
			most = min(most, s.limits.gather+2) // how many more it finds changes nothing
		}
		if err := s.measure(ctx, p, most); err != nil {
			return nil, err
		}
		if p.size < fewest {
			best, fewest = p, p.size
		}
		if fewest <= s.r.Limit {
			break
		}
	}
	return best, nil
}

// measure counts the rows of a plan, up to most. A text plan finds at most limits.gather rows.
func (s *search) measure(ctx context.Context, p *plan, most int) error {
	p.size = 0
	if p.match != nil {
		most = min(most, s.limits.gather+1)
	}
	for _, source := range p.sources {
		found, err := tables.List[int](ctx, s.q,
			"SELECT count(*) FROM (SELECT 1 FROM "+source.from()+" WHERE "+source.where+" LIMIT ?)",
			append(slices.Clone(source.args), most-p.size)...)
		if err != nil {
			return fmt.Errorf("measure plan: %w", err)
		}
		if p.size += found[0]; p.size >= most {
			break
		}
	}
	if p.match == nil {
		return nil
	}
	if p.size < most {
		var err error
		p.tasks, err = p.match.find(ctx, s.q, 0, math.MaxInt64, most-p.size)
		if err != nil {
			return fmt.Errorf("search texts: %w", err)
		}
		p.size += len(p.tasks)
	}
	if p.size >= most {
		p.size = s.limits.scan + 1
	} else if len(p.tasks) > 0 {
		p.sources = append(p.sources, source{where: "task IN (SELECT value FROM json_each(?))", args: []any{jsonArray(p.tasks)}})
	}
	return nil
}

// byClock reads the plan that finds fewest rows of those that are sorted by clock, or else all rows by clock.
func (s *search) byClock(plans []plan, compiled []where.Condition) {
	best := &plan{sources: []source{s.o.index()}, size: math.MaxInt}
	for i := range plans {
		if p := &plans[i]; p.sorted() && p.size < best.size {
			best = p
		} else if p.ranged() {
			s.ranges = append(s.ranges, *p)
		}
	}
	s.sources, s.check = best.sources, uncovered(compiled, best)
}

// byColumn reads the index of the column that the list is sorted by, as far as conditions on it allow.
func (s *search) byColumn(conditions []query.Expr, compiled []where.Condition) {
	p := plan{sources: []source{s.o.index()}}
	for i, e := range conditions {
		if t, ok := e.(query.Term); ok && t.Field == s.o.field {
			p.sources[0].where += " AND (" + compiled[i].SQL + ")"
			p.sources[0].args = append(p.sources[0].args, compiled[i].Args...)
			p.covers = append(p.covers, i)
		}
	}
	s.sources, s.check = p.sources, uncovered(compiled, &p)
}
