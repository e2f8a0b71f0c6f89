package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// limits bound what one search does.
type limits struct {
	gather int // rows that are gathered and sorted, rather than walked in order
	scan   int // rows of an index that are looked through for the first ones in order
	walk   int // rows that a page looks at,
	count  int // and a count
	unfold int // tasks that are unfolded to check what SQL cannot
	window int // rows that SQL checks at a time, at first
	step   int // rows that one scan yields, and four times as many where not all of them match
}

func defaultLimits() limits {
	return limits{gather: 10_000, scan: 250_000, walk: 50_000, count: 100_000, unfold: 4_000, window: 1_000, step: 1_000}
}

// maxPage is how many tasks a page has at most.
const maxPage = 500

// Tasks returns a page of the tasks that match.
func (d *DB) Tasks(ctx context.Context, r store.Request) (store.Page, error) {
	var page store.Page
	r.Limit = min(max(r.Limit, 1), maxPage)
	err := d.snapshot(ctx, func(q queryer) error {
		s, err := newSearch(ctx, q, r, d.limits, d.limits.walk)
		if err == nil {
			page, err = s.page(ctx)
		}
		return err
	})
	if err != nil {
		return store.Page{}, fmt.Errorf("search history: %w", explain(err))
	}
	return page, nil
}

// Count returns how many match, exactly up to limit.
func (d *DB) Count(ctx context.Context, q query.Query, now time.Time, limit int) (store.Count, error) {
	var count store.Count
	err := d.snapshot(ctx, func(tx queryer) error {
		s, err := newSearch(ctx, tx, store.Request{Query: q, Now: now, Limit: limit}, d.limits, d.limits.count)
		if err == nil {
			count, err = s.count(ctx)
		}
		return err
	})
	if err != nil {
		return store.Count{}, fmt.Errorf("count history: %w", explain(err))
	}
	return count, nil
}

// Values returns values that a field of type Word, or State, has, which contain part without regard to case.
func (d *DB) Values(ctx context.Context, f query.Field, part string, limit int) ([]string, error) {
	if f != query.State && f.Type() != query.Word || !symbolic(f) {
		return nil, nil
	}
	c := compiler{q: d.read}
	used, err := c.values(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("list values: %w", explain(err))
	}
	values := make([]string, 0, limit)
	for _, s := range used {
		if strings.Contains(strings.ToLower(s.text), strings.ToLower(part)) {
			values = append(values, s.text)
		}
	}
	slices.Sort(values)
	return values[:min(limit, len(values))], nil
}

// symbolic reports whether the column of a field holds symbols.
func symbolic(f query.Field) bool {
	switch f { //nolint:exhaustive // the others do not
	case query.State, query.Name, query.Worker, query.Queue, query.Client, query.Exchange, query.RoutingKey:
		return true
	default:
		return false
	}
}

// snapshot lets f read the history as it is at one moment.
func (d *DB) snapshot(ctx context.Context, f func(q queryer) error) error {
	tx, err := d.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	return f(tx)
}

// search is one search at work.
type search struct {
	q      queryer
	r      store.Request
	o      order
	limits limits
	most   int  // rows to look at
	exact  bool // SQL decides all
	reader state.Reader
	producer
}

// newSearch chooses how to find the tasks: a plan that finds few gathers and sorts them; else all are walked in the
// order of the list, along a plan that has them in this order if there is one.
func newSearch(ctx context.Context, q queryer, r store.Request, l limits, most int) (*search, error) {
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
	scan := &scanned{q: s.q, o: s.o, step: s.limits.step, sources: best.sources, size: best.size, within: always, check: rest(compiled, best)}
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
	if i := slices.IndexFunc(plans, func(p plan) bool { return p.sorted() }); i >= 0 {
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

// candidate is a task that may match, with its place.
type candidate struct {
	state.Position
	task state.Task
}

// page walks until the page is full, or enough tasks have been looked at.
func (s *search) page(ctx context.Context) (store.Page, error) {
	var found []candidate
	unfolded, want := 0, s.r.Limit+1
	for {
		rows, more, err := s.next(ctx, want)
		if err != nil {
			return store.Page{}, err
		}
		batch, err := s.load(ctx, rows)
		if err != nil {
			return store.Page{}, err
		}
		unfolded += len(batch)
		for _, b := range batch {
			if s.exact || s.r.Query.Match(&b.task, s.r.Now) {
				found = append(found, b)
			}
		}
		switch _, looked := s.place(); {
		case len(found) > s.r.Limit:
			return s.full(found[:s.r.Limit]), nil
		case !more:
			return s.ended(found), nil
		case unfolded >= s.limits.unfold || looked >= s.most:
			return s.stopped(found, max(unfolded, looked)), nil
		}
		if want = min(2*want, 1000); s.exact && s.rest().sql == always.sql {
			want = s.r.Limit + 1 - len(found)
		}
	}
}

// full makes a page of tasks after which there are more.
func (s *search) full(found []candidate) store.Page {
	last := found[len(found)-1].Position
	return s.make(found, &last)
}

// ended makes a page of the last tasks.
func (s *search) ended(found []candidate) store.Page { return s.make(found, nil) }

// stopped makes a page of what was found before the search was given up.
func (s *search) stopped(found []candidate, looked int) store.Page {
	k, _ := s.place()
	page := s.make(found, new(s.o.behind(k)))
	page.Searched = looked
	return page
}

// make makes a page of tasks, given where the walk goes on.
func (s *search) make(found []candidate, on *state.Position) store.Page {
	page := store.Page{Tasks: make([]state.Task, len(found)), Next: on}
	for i := range found {
		page.Tasks[i] = found[i].task
	}
	if s.r.From != nil && len(found) > 0 {
		page.Prev = &found[0].Position
	}
	if s.r.Newer {
		slices.Reverse(page.Tasks)
		page.Next, page.Prev = page.Prev, page.Next
	}
	return page
}

// load unfolds the tasks of rows for which the rest holds, in their exact order, without those that come before
// the page.
func (s *search) load(ctx context.Context, rows []row) ([]candidate, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	tasks := make([]int64, len(rows))
	values := make(map[int64]int64, len(rows))
	low, high := int64(math.MaxInt64), int64(0)
	for i, r := range rows {
		tasks[i], values[r.task] = r.task, r.value
		low, high = min(low, r.task), max(high, r.task)
	}
	check := s.rest()
	found, err := s.q.QueryContext(ctx, `SELECT task, id, body FROM tasks JOIN events USING (task)
		WHERE task IN (SELECT value FROM json_each(?)) AND (`+check.sql+")", append([]any{numbers(tasks)}, check.bind(low, high)...)...)
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	batch := make([]candidate, 0, len(rows))
	err = scan(found, func() error {
		var task int64
		var id any
		var events sql.RawBytes
		if err := found.Scan(&task, &id, &events); err != nil {
			return err
		}
		t, err := s.reader.View(idText(id), events)
		if err != nil {
			return fmt.Errorf("task %s: %w", idText(id), err)
		}
		p := state.Position{Stamp: t.Stamp, Value: values[task], ID: t.ID}
		if s.r.From == nil || s.o.comparePositions(p, *s.r.From) > 0 {
			batch = append(batch, candidate{p, t})
		}
		return nil
	})
	slices.SortFunc(batch, func(a, b candidate) int { return s.o.comparePositions(a.Position, b.Position) })
	return batch, wrap("read tasks", err)
}
