package rollup

import (
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Countable reports whether rollups tell what matches a query: it asks for names, workers and queues only.
func Countable(q query.Query) bool { return countedByCells(q.Expr()) }

// conditions are a query in terms of rollups.
type conditions struct {
	states                 []state.State
	where                  query.Query // what a cell must match
	names, workers, queues []string    // if not empty, where asks for one of these
}

// conditionsOf returns the query in terms of rollups, false if they cannot answer it.
func conditionsOf(q query.Query) (conditions, bool) {
	c := conditions{states: countedStates()}
	for _, part := range q.Conditions() {
		e := part.Expr()
		if t, ok := e.(query.Term); ok && t.Field == query.State {
			c.states = slices.DeleteFunc(c.states, func(s state.State) bool { return !has(t, string(s)) })
			if len(t.Values) != len(c.states) {
				return c, false
			}
			continue
		}
		if !countedByCells(e) {
			return c, false
		}
		if t, ok := e.(query.Term); ok {
			c.restrict(t)
		}
		c.where = c.where.And(part)
	}
	return c, true
}

func has(t query.Term, text string) bool {
	return slices.ContainsFunc(t.Values, func(v query.Value) bool {
		return v.Match == query.Exact && strings.EqualFold(v.Text, text)
	})
}

// countedByCells reports whether an expression is about names, workers and queues only.
func countedByCells(e query.Expr) bool {
	switch e := e.(type) {
	case query.And:
		return !slices.ContainsFunc(e, func(x query.Expr) bool { return !countedByCells(x) })
	case query.Or:
		return !slices.ContainsFunc(e, func(x query.Expr) bool { return !countedByCells(x) })
	case query.Not:
		return countedByCells(e.X)
	case query.Term:
		return e.Field == query.Name || e.Field == query.Worker || e.Field == query.Queue
	default:
		return e == nil
	}
}

// grouping returns what rollups must be told apart by, so that it is known what they match and which group they are in.
func (c *conditions) grouping(g Group) history.RollupGrouping {
	told := map[query.Field]bool{}
	fields(c.where.Expr(), told)
	switch g {
	case ByName:
		told[query.Name] = true
	case ByWorker:
		told[query.Worker] = true
	case ByQueue:
		told[query.Queue] = true
	case ByState:
	}
	switch {
	case len(told) == 0:
		return history.ByTime
	case len(told) > 1:
		return history.ByAll
	case told[query.Name]:
		return history.ByName
	case told[query.Worker]:
		return history.ByWorker
	default:
		return history.ByQueue
	}
}

// fields adds the fields that an expression is about.
func fields(e query.Expr, to map[query.Field]bool) {
	switch e := e.(type) {
	case query.And:
		for _, x := range e {
			fields(x, to)
		}
	case query.Or:
		for _, x := range e {
			fields(x, to)
		}
	case query.Not:
		fields(e.X, to)
	case query.Term:
		to[e.Field] = true
	}
}

// restrict limits the names, workers or queues to read to those that a term selects.
func (c *conditions) restrict(t query.Term) {
	var words []string
	for _, v := range t.Values {
		if v.Match != query.Exact {
			return
		}
		words = append(words, v.Text)
	}
	switch t.Field {
	case query.Name:
		c.names = words
	case query.Worker:
		c.workers = words
	case query.Queue:
		c.queues = words
	default:
	}
}
