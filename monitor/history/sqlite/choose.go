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
	gather  int // rows that are gathered and sorted, rather than walked in order
	scan    int // rows of an index that are looked through for the first ones in order
	walk    int // rows that a page looks at,
	count   int // and a count
	unfold  int // tasks that are unfolded to check what SQL cannot
	window  int // rows that SQL checks at a time, at first
	lookups int // rows that are read, each somewhere else, to count
	step    int // rows that one scan yields, and four times as many where not all of them match

	groups   int // of failures
	failures int // that are counted of one group
}

func defaultLimits() limits {
	return limits{
		gather: 10_000, scan: 250_000, walk: 50_000, count: 100_000, unfold: 4_000, window: 1_000, step: 1_000, lookups: 10_000,
		groups: history.MaxFailureGroups, failures: history.MaxFailureCount,
	}
}

// newSearch chooses how to find the tasks: a plan that finds few gathers and sorts them; else all are walked in the
// order of the list, along a plan that has them in this order if there is one.
func newSearch(ctx context.Context, q queryer, r history.TaskRequest, l limits, most int) (*search, error) {
	s := &search{q: q, limits: l, most: most, r: r, o: newOrder(r.Sort, r.Newer), exact: true}
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
	if err != nil {
		return nil, err
	}
	switch {
	case best != nil && best.size <= s.limits.gather:
		err = s.gather(ctx, best, compiled)
	case best != nil && s.o.column == "" && best.indexed():
		err = s.scan(ctx, plans, best, compiled)
	default:
		s.walk(plans, best, conditions, compiled)
	}
	return s, err
}

// rest joins the conditions that plans leave to be checked.
func rest(compiled []condition, plans ...*plan) condition {
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
		if s.o.column == "" && p.sorted() && rest(compiled, p).sql == always.sql {
			most = min(most, s.limits.gather+2) // it is walked in any case
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

// measure counts the rows of a plan, up to most. Of those with a text no more are found than can be gathered.
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
	}
	return nil
}

// gather gathers the rows of a plan that finds few.
func (s *search) gather(ctx context.Context, p *plan, compiled []condition) error {
	var from *key
	if s.r.From != nil {
		from = new(s.o.keyOf(*s.r.From))
	}
	rows, err := gather(ctx, s.q, s.o, p, from)
	s.producer = &gathered{o: s.o, rows: rows, check: rest(compiled, p)}
	return err
}

// scan looks for the first rows of a plan that finds many, and, if there is another such plan, only for those that both
// find. A plan that is sorted needs no scan unless there is another.
func (s *search) scan(ctx context.Context, plans []plan, best *plan, compiled []condition) error {
	most := s.limits.scan + 1
	var other *plan
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
			other, most = p, p.size
		}
	}
	if other == nil && best.sorted() {
		s.walk([]plan{*best}, best, nil, compiled)
		return nil
	}
	scan := &scanned{q: s.q, o: s.o, step: s.limits.step, most: s.limits.lookups, sources: best.sources, size: best.size, within: always, check: rest(compiled, best)}
	if other != nil {
		scan.sources, scan.size, scan.within, scan.check = other.sources, other.size, within(best), rest(compiled, best, other)
	}
	if s.r.From != nil {
		scan.at, scan.inclusive, scan.started = s.o.keyOf(*s.r.From), true, true
	}
	s.producer = scan
	return nil
}

// within holds of the rows that a plan finds.
func within(p *plan) condition {
	c := condition{exact: true}
	arms := make([]string, len(p.sources))
	for i, s := range p.sources {
		arms[i] = "SELECT task FROM " + s.from() + " WHERE " + s.where
		c.args = append(c.args, s.args...)
	}
	c.sql = "task IN (" + strings.Join(arms, " UNION ALL ") + ")"
	return c
}

// maxTextStreams is how many sources are walked side by side where each looks into texts.
const maxTextStreams = 4

// walk walks the first plan that is sorted as the list, or else the whole list.
func (s *search) walk(plans []plan, best *plan, conditions []query.Expr, compiled []condition) {
	w := &walk{q: s.q, o: s.o, most: s.most, window: s.limits.window}
	if s.r.From != nil {
		w.at, w.inclusive, w.started = s.o.keyOf(*s.r.From), true, true
	}
	s.producer = w
	if s.o.column != "" {
		s.walkColumn(w, best, conditions, compiled)
		return
	}
	all := plan{sources: []source{s.o.index()}}
	p := &all
	i := slices.IndexFunc(plans, func(p plan) bool {
		return p.sorted() && (len(p.sources) <= maxTextStreams || !rest(compiled, &p).texts())
	})
	if i >= 0 {
		p = &plans[i]
	}
	w.sources, w.check = p.sources, rest(compiled, p)
	for i := range plans {
		if plans[i].ranged() {
			w.ranges = append(w.ranges, plans[i])
		}
	}
}

// walkColumn walks the index of the column that the list is sorted by, as far as conditions on this column allow. Rows
// that a plan finds in indexes are checked by these.
func (s *search) walkColumn(w *walk, best *plan, conditions []query.Expr, compiled []condition) {
	all, bounds := s.o.index(), plan{}
	for i, e := range conditions {
		if t, ok := e.(query.Term); ok && t.Field == s.o.field {
			all.where += " AND (" + compiled[i].sql + ")"
			all.args = append(all.args, compiled[i].args...)
			bounds.covers = append(bounds.covers, i)
		}
	}
	w.sources, w.check = []source{all}, rest(compiled, &bounds)
	further := func(i int) bool { return !slices.Contains(bounds.covers, i) }
	if best != nil && best.indexed() && slices.ContainsFunc(best.covers, further) {
		left := rest(compiled, &bounds, best)
		if w.check = within(best); left.sql != always.sql {
			w.check = join("AND", []condition{w.check, left})
		} else {
			w.most *= 10 // no row is read
		}
	}
}
