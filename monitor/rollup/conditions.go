package rollup

import (
	"slices"
	"strings"

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
