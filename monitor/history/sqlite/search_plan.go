package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/query"
)

// limits bound what one search does, and groups of failures.
type limits struct {
	gather  int // rows of a plan up to which it is used, whatever the order of the list
	scan    int // rows of an index that are read to find the first of the list
	page    int // rows that a page examines
	count   int // rows that a count examines
	lookups int // rows that a count examines if each is on another page of the file
	decoded int // tasks that are decoded to check what SQL cannot
	chunk   int // minimum of rows to read at once from an unsorted plan

	groups   int // of failures
	failures int // that are counted of one group
}

func defaultLimits() limits {
	return limits{
		gather: 10_000, scan: 250_000, page: 50_000, count: 100_000, lookups: 10_000, decoded: 4_000, chunk: 1_000,
		groups: history.MaxFailureGroups, failures: history.MaxFailureCount,
	}
}

// newSearch chooses the source of rows: the plan that finds fewest; if that finds many, the rows that two plans find, or an
// index in the order of the list.
func newSearch(ctx context.Context, q queryer, r history.TaskRequest, l limits) (*search, error) {
	s := &search{q: q, limits: l, r: r, o: newOrder(r.Sort, r.Newer), exact: true}
	s.rowCursor = rowCursor{q: q, o: s.o, within: always}
	if r.From != nil {
		s.start(s.o.keyOf(*r.From))
	}
	c := &compiler{q: q, now: r.Now}
	conditions := []query.Expr{r.Query.Expr()}
	if all, ok := conditions[0].(query.And); ok {
		conditions = all
	}
	compiled := make([]condition, len(conditions))
	for i, e := range conditions {
		var err error
		if compiled[i], err = c.expr(ctx, e); err != nil {
			return nil, err
		}
		s.exact = s.exact && compiled[i].exact
	}
	plans, err := c.plans(ctx, conditions)
	if err != nil {
		return nil, err
	}
	best, err := s.fewest(ctx, plans, compiled)
	switch {
	case err != nil:
		return nil, err
	case best != nil && best.size <= l.gather:
		s.sources, s.check, s.size = best.sources, uncovered(compiled, best), best.size
		if s.o.column != "" || !best.indexed() {
			s.chunk = best.size // all at once
		} else if !best.sorted() {
			s.chunk, s.cost = l.chunk, best.size/10
		}
	case s.o.column != "":
		s.byColumn(best, conditions, compiled)
	case best != nil && best.indexed():
		err = s.byPlans(ctx, plans, best, compiled)
	default:
		s.byClock(plans, compiled)
	}
	return s, err
}

// uncovered returns the conditions that plans leave to be checked.
func uncovered(compiled []condition, plans ...*plan) condition {
	var left []condition
	for i, c := range compiled {
		covered := slices.ContainsFunc(plans, func(p *plan) bool { return slices.Contains(p.covers, i) })
		if !covered && c.sql != always.sql {
			left = append(left, c)
		}
	}
	return join("AND", left)
}

// fewest returns the plan that finds fewest rows, nil if all find many.
func (s *search) fewest(ctx context.Context, plans []plan, compiled []condition) (best *plan, err error) {
	fewest := s.limits.scan + 1
	for i := range plans {
		p, most := &plans[i], fewest
		if s.o.column == "" && p.sorted() && uncovered(compiled, p).sql == always.sql {
			most = min(most, s.limits.gather+2) // it is used in any case
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
	if p.match != "" {
		most = min(most, s.limits.gather+1)
	}
	for _, source := range p.sources {
		found, err := list[int](ctx, s.q,
			"SELECT count(*) FROM (SELECT 1 FROM "+source.from()+" WHERE "+source.where+" LIMIT ?)",
			append(slices.Clone(source.args), most-p.size)...)
		if err != nil {
			return fmt.Errorf("measure plan: %w", err)
		}
		if p.size += found[0]; p.size >= most {
			break
		}
	}
	if p.match == "" {
		return nil
	}
	if p.size < most {
		var err error
		p.tasks, err = list[int64](ctx, s.q, "SELECT rowid FROM texts WHERE texts MATCH ? LIMIT ?", p.match, most-p.size)
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

// byPlans reads the rows of a plan, only those that another one also finds if there is one.
func (s *search) byPlans(ctx context.Context, plans []plan, best *plan, compiled []condition) error {
	most := s.limits.scan + 1
	first := best
	for i := range plans {
		p := &plans[i]
		further := slices.ContainsFunc(p.covers, func(i int) bool { return !slices.Contains(best.covers, i) })
		if p == best || !p.indexed() || !further {
			continue
		}
		if err := s.measure(ctx, p, most); err != nil {
			return err
		}
		if p.size < most {
			first, most = p, p.size
		}
	}
	s.sources, s.size, s.check = first.sources, first.size, uncovered(compiled, best, first)
	if first != best {
		s.within = inPlan(best)
	} else if best.sorted() {
		return nil
	}
	s.chunk, s.cost = s.limits.chunk, s.size/10 // reading an index is faster than rows
	if s.check.sql != always.sql {
		s.chunk *= 4
	}
	return nil
}

// inPlan selects the rows that a plan finds.
func inPlan(p *plan) condition {
	c := condition{exact: true}
	arms := make([]string, len(p.sources))
	for i, s := range p.sources {
		arms[i] = "SELECT task FROM " + s.from() + " WHERE " + s.where
		c.args = append(c.args, s.args...)
	}
	c.sql = "task IN (" + strings.Join(arms, " UNION ALL ") + ")"
	return c
}

// byClock reads the first plan that is sorted by clock, or else all rows by clock.
func (s *search) byClock(plans []plan, compiled []condition) {
	all := plan{sources: []source{s.o.index()}}
	p := &all
	if i := slices.IndexFunc(plans, func(p plan) bool { return p.sorted() }); i >= 0 {
		p = &plans[i]
	}
	s.sources, s.check = p.sources, uncovered(compiled, p)
	for i := range plans {
		if plans[i].ranged() {
			s.ranges = append(s.ranges, plans[i])
		}
	}
}

// byColumn reads the index of the column that the list is sorted by, as far as conditions on it allow, and only rows that a
// plan finds in other indexes.
func (s *search) byColumn(best *plan, conditions []query.Expr, compiled []condition) {
	all, bounds := s.o.index(), plan{}
	for i, e := range conditions {
		if t, ok := e.(query.Term); ok && t.Field == s.o.field {
			all.where += " AND (" + compiled[i].sql + ")"
			all.args = append(all.args, compiled[i].args...)
			bounds.covers = append(bounds.covers, i)
		}
	}
	s.sources, s.check = []source{all}, uncovered(compiled, &bounds)
	further := func(i int) bool { return !slices.Contains(bounds.covers, i) }
	if best != nil && best.indexed() && slices.ContainsFunc(best.covers, further) {
		s.within, s.check = inPlan(best), uncovered(compiled, &bounds, best)
	}
}
