package sqlite

import (
	"context"
	"slices"

	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// source is a set of rows that one index finds.
type source struct {
	index  string // empty leaves the choice to SQLite
	where  string
	args   []any
	sorted bool   // the index yields them by clock
	column string // if it is a range of times, the column that the index has before the clock
}

func (s source) from() string {
	if s.index == "" {
		return "tasks"
	}
	return "tasks INDEXED BY " + s.index
}

// plan finds all rows for which some conditions of a query hold, or more.
type plan struct {
	sources []source
	match   textMatch // finds further rows; nil if there is none
	covers  []int     // conditions of the query that hold for all its rows

	size  int     // rows, as far as they were counted
	tasks []int64 // rows that match has found
}

// sorted reports whether the rows can be read by clock.
func (p *plan) sorted() bool {
	return p.match == nil && !slices.ContainsFunc(p.sources, func(s source) bool { return !s.sorted })
}

// ranged reports whether all sources are ranges of times.
func (p *plan) ranged() bool {
	return p.match == nil && !slices.ContainsFunc(p.sources, func(s source) bool { return s.column == "" })
}

// indexed reports whether each source is read from one index.
func indexed(sources []source) bool {
	return !slices.ContainsFunc(sources, func(s source) bool { return s.index == "" && !s.sorted })
}

// maxStreams bounds the sources of a statement.
const maxStreams = 100

// plans returns the plans for the conditions, sorted ones first.
func (c *compiler) plans(ctx context.Context, conditions []query.Expr) ([]plan, error) {
	var plans []plan
	for i, e := range conditions {
		t, ok := e.(query.Term)
		if ok && (t.Field.Type() == query.Text || byState(t.Field)) {
			continue
		}
		sources, whole, err := c.sources(ctx, e)
		if err != nil {
			return nil, err
		}
		if len(sources) > 0 && len(sources) <= maxStreams {
			p := plan{sources: sources}
			if whole {
				p.covers = []int{i}
			}
			plans = append(plans, p)
		}
	}
	streams, err := c.statePlans(ctx, conditions)
	if err != nil {
		return nil, err
	}
	plans = append(plans, streams...)
	texts, err := c.textPlans(ctx, conditions)
	return append(plans, texts...), err
}

// byState reports whether the index of a field has the state before the clock.
func byState(f query.Field) bool {
	return f == query.Name || f == query.Worker || f == query.Queue || f == query.State
}

// sources returns the sources of the rows for which an expression holds, none if there is no index, and whether it holds for
// all their rows.
func (c *compiler) sources(ctx context.Context, e query.Expr) (sources []source, whole bool, err error) {
	switch e := e.(type) {
	case query.And:
		for _, x := range e {
			if sources, _, err = c.sources(ctx, x); err != nil || len(sources) > 0 {
				return sources, false, err
			}
		}
		return nil, false, nil
	case query.Or:
		whole = true
		for _, x := range e {
			some, all, err := c.sources(ctx, x)
			if err != nil || len(some) == 0 {
				return nil, false, err
			}
			sources, whole = append(sources, some...), whole && all
		}
		return sources, whole, nil
	case query.Term:
		sources, err = c.termSources(ctx, e)
		return sources, true, err
	default:
		return nil, false, nil
	}
}

func (c *compiler) termSources(ctx context.Context, t query.Term) ([]source, error) {
	switch {
	case t.Field == query.ID:
		return idSources("id", "", t.Values), nil
	case t.Field == query.Parent:
		return idSources("parent", "tasks_by_parent", t.Values), nil
	case t.Field == query.Root:
		roots := idSources("root", "tasks_by_root", t.Values)
		if roots == nil {
			return nil, nil
		}
		return append(roots, idSources("id", "", t.Values)...), nil
	case t.Field == query.Failure:
		return failureSources(t.Values), nil
	case t.Field == query.Is:
		return isSources(t.Values), nil
	case t.Field == query.Dup:
		return dupSources(t.Values), nil
	case t.Field == query.Outbox || t.Field == query.Cluster || t.Field.Causal():
		return nil, nil
	case byState(t.Field):
		plans, err := c.statePlans(ctx, []query.Expr{t})
		if err != nil || len(plans) == 0 {
			return nil, err
		}
		return plans[0].sources, nil
	case hasIndex(t.Field):
		return c.rangeSources(t), nil
	default:
		return nil, nil
	}
}

// hasIndex reports whether there is an index of the field's column.
func hasIndex(f query.Field) bool {
	switch f {
	case query.Client, query.Exchange, query.RoutingKey, query.ETA, query.Expires:
		return false
	default:
		return f.Type() != query.Text
	}
}

// idSources returns a source for each value, none if one needs all ids.
func idSources(column, index string, values []query.Value) []source {
	if len(values) > maxIDTerms && where.AllExact(values) {
		is := idsCondition(column, values)
		return []source{{where: is.SQL, args: is.Args}}
	}
	var sources []source
	for _, v := range values {
		is := idCondition(column, []query.Value{v})
		if v.Match == query.Contains || v.Match == query.Pattern && (v.Text == "" || v.Text[0] == '*') {
			return nil
		}
		s := source{index: index, where: is.SQL, args: is.Args, sorted: v.Match == query.Exact}
		if !s.sorted {
			s.index = "" // two ranges
		}
		sources = append(sources, s)
	}
	return sources
}

func failureSources(values []query.Value) []source {
	sources := make([]source, len(values))
	for i, v := range values {
		is := where.Failure([]query.Value{v})
		sources[i] = source{
			index: "tasks_by_failure", where: "failure IS NOT NULL AND (" + is.SQL + ")", args: is.Args, sorted: v.Match == query.Exact,
		}
	}
	return sources
}

func isSources(values []query.Value) []source {
	var sources []source
	for _, v := range values {
		switch v.Text {
		case query.IsActive:
			sources = append(sources, source{index: "tasks_active", where: "final = 0", sorted: true})
		case query.IsFinished:
			return nil
		default:
			for flags := range int64(where.AllFlags + 1) {
				if flags&where.Flag(v.Text) != 0 && possible(flags) {
					sources = append(sources, source{
						index: "tasks_by_flags", where: "flags <> 0 AND flags = ?", args: []any{flags}, sorted: true,
					})
				}
			}
		}
	}
	return sources
}

// dupSources returns a source for each set of marks that has one of those asked for, and for each call.
func dupSources(values []query.Value) []source {
	var sources []source
	marks, calls := where.Duplicates(values)
	for set := range state.AllDuplicates + 1 {
		if set&marks != 0 {
			sources = append(sources, source{index: "tasks_by_dup", where: "dup <> 0 AND dup = ?", args: []any{set}, sorted: true})
		}
	}
	for _, call := range calls {
		sources = append(sources, source{index: "tasks_by_call", where: ofCall, args: []any{call[:]}})
	}
	return sources
}

// possible reports whether a task can have these flags.
func possible(flags int64) bool {
	lost, orphaned, dismissed := flags&where.FlagLost != 0, flags&where.FlagOrphaned != 0, flags&where.FlagDismissed != 0
	return (lost || !orphaned) && (!lost || !dismissed)
}

// noRows is an empty source.
func noRows() source { return source{index: "tasks_by_clock", where: "FALSE", sorted: true} }

func (c *compiler) rangeSources(t query.Term) []source {
	column := where.Column(t.Field)
	sources := make([]source, len(t.Values))
	for i, v := range t.Values {
		in := where.Range(column, []query.Value{v}, c.now)
		sources[i] = source{index: "tasks_by_" + column, where: in.SQL, args: in.Args}
		sources[i].sorted = t.Field == query.Clock
		if t.Field.Type() == query.Time {
			sources[i].column = column
		}
	}
	return sources
}

// statePlans returns plans by name, worker, queue or state. Their indexes have the state before the clock, so there is a
// source for each state that conditions allow.
func (c *compiler) statePlans(ctx context.Context, conditions []query.Expr) ([]plan, error) {
	used, err := c.usedSymbols(ctx, query.State)
	if err != nil {
		return nil, err
	}
	var states []int // conditions on states
	for i, e := range conditions {
		if allows := stateFilter(e); allows != nil {
			states = append(states, i)
			used = slices.DeleteFunc(slices.Clone(used), func(s symbol) bool { return !allows(s.text) })
		}
	}
	var plans []plan
	for i, e := range conditions {
		t, ok := e.(query.Term)
		if !ok || !byState(t.Field) || t.Field == query.State {
			continue
		}
		symbols, known, err := c.symbols(ctx, t)
		if err != nil {
			return nil, err
		}
		if !known || len(symbols)*len(used) > maxStreams {
			continue
		}
		column := where.Column(t.Field)
		p := plan{sources: []source{}, covers: append([]int{i}, states...)}
		for _, n := range symbols {
			for _, s := range used {
				p.sources = append(p.sources, source{
					index: "tasks_by_" + column, where: column + " = ? AND state = ?", args: []any{n, s.number}, sorted: true,
				})
			}
		}
		if t.Field == query.Name {
			former, err := c.formerSources(ctx, symbols, used)
			if err != nil {
				return nil, err
			}
			if p.sources = append(p.sources, former...); len(p.sources) > maxStreams {
				continue
			}
		}
		plans = append(plans, p)
	}
	if len(states) > 0 && len(used) <= maxStreams {
		p := plan{covers: states}
		for _, s := range used {
			p.sources = append(p.sources, source{
				index: "tasks_by_state", where: "state = ?", args: []any{s.number}, sorted: true,
			})
		}
		plans = append(plans, p)
	}
	for i := range plans {
		if len(plans[i].sources) == 0 {
			plans[i].sources = []source{noRows()}
		}
	}
	return plans, nil
}

// stateFilter returns which states an expression allows, nil if it is not about states alone.
func stateFilter(e query.Expr) func(text string) bool {
	switch e := e.(type) {
	case query.Not:
		if allows := stateFilter(e.X); allows != nil {
			return func(text string) bool { return !allows(text) }
		}
	case query.Term:
		final := func(v query.Value) bool { return v.Text == query.IsActive || v.Text == query.IsFinished }
		if e.Field == query.State || e.Field == query.Is && !slices.ContainsFunc(e.Values, func(v query.Value) bool { return !final(v) }) {
			return where.Matcher(e)
		}
	}
	return nil
}

// textPlans returns the plans that search the text index.
func (c *compiler) textPlans(ctx context.Context, conditions []query.Expr) ([]plan, error) {
	var plans []plan
	var all plan
	for i, e := range conditions {
		t, ok := e.(query.Term)
		if !ok || t.Field.Type() != query.Text {
			continue
		}
		match, ok, err := c.match(ctx, t.Values)
		switch {
		case err != nil:
			return nil, err
		case !ok:
		case t.Field != query.Any:
			all.match = append(all.match, match)
			all.covers = append(all.covers, i)
		default:
			other, err := c.nameAndIDConditions(ctx, t)
			if err != nil {
				return nil, err
			}
			p := plan{match: textMatch{match}, covers: []int{i}}
			if p.sources, err = c.unindexedTexts(ctx); err != nil {
				return nil, err
			}
			for _, o := range other {
				p.sources = append(p.sources, source{where: o.SQL, args: o.Args})
			}
			plans = append(plans, p)
		}
	}
	if all.match != nil {
		var err error
		if all.sources, err = c.unindexedTexts(ctx); err != nil {
			return nil, err
		}
		plans = append(plans, all)
	}
	return plans, nil
}

// unindexedTexts are the sources of rows whose text is not in the text index yet.
func (c *compiler) unindexedTexts(ctx context.Context) ([]source, error) {
	to, err := c.textsTo(ctx)
	return []source{{where: "task > ?", args: []any{to}}, {where: "task IN (SELECT task FROM unindexed)"}}, err
}
