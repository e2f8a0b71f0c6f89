package query

import (
	"slices"

	"github.com/umbelhq/umbel/state"
)

// Query is a parsed query. The zero value matches every task.
type Query struct {
	expr Expr
	text string
}

// New returns the query of an expression.
func New(e Expr) Query {
	e = simplify(e)
	return Query{expr: e, text: format(e)}
}

// Expr returns the expression, simplified, with values sorted: an empty And if it matches everything. It must
// not be modified.
func (q Query) Expr() Expr {
	if q.expr == nil {
		return And{}
	}
	return q.expr
}

// String returns the one spelling of the query. Equal queries have equal spellings.
func (q Query) String() string { return q.text }

// Equal reports whether the queries are the same.
func (q Query) Equal(p Query) bool { return q.text == p.text }

// All reports whether the query matches every task.
func (q Query) All() bool { return q.text == "" }

// And returns the query that matches where both do. It may be longer than Parse allows.
func (q Query) And(p Query) Query { return New(And{q.Expr(), p.Expr()}) }

// Simple returns the query as a state.Query, which a cluster answers from its columns alone, and false if it needs
// more: it allows exact states, names, workers, and one root, joined by and.
func (q Query) Simple() (state.Query, bool) {
	var s state.Query
	used := map[Field]bool{}
	for _, e := range q.conditions() {
		t, ok := e.(Term)
		if !ok || used[t.Field] {
			return state.Query{}, false
		}
		used[t.Field] = true
		for _, v := range t.Values {
			if v.Match != Exact {
				return state.Query{}, false
			}
			switch {
			case t.Field == State:
				s.States = append(s.States, state.State(v.Text))
			case t.Field == Name:
				s.Names = append(s.Names, v.Text)
			case t.Field == Worker:
				s.Workers = append(s.Workers, v.Text)
			case t.Field == Root && len(t.Values) == 1:
				s.Root = v.Text
			default:
				return state.Query{}, false
			}
		}
	}
	return s, true
}

// conditions returns what must all hold.
func (q Query) conditions() []Expr {
	if all, ok := q.Expr().(And); ok {
		return all
	}
	return []Expr{q.expr}
}

// Mentions reports whether a condition of the query, wherever it is, is on a field.
func (q Query) Mentions(f Field) bool { return mentions(q.Expr(), f) }

func mentions(e Expr, f Field) bool {
	some := func(list []Expr) bool { return slices.ContainsFunc(list, func(x Expr) bool { return mentions(x, f) }) }
	switch e := e.(type) {
	case And:
		return some(e)
	case Or:
		return some(e)
	case Not:
		return mentions(e.X, f)
	case Term:
		return e.Field == f
	default:
		return false
	}
}

// Conditions returns the queries that, joined by and, make this one.
func (q Query) Conditions() []Query {
	var all []Query
	for _, e := range q.conditions() {
		all = append(all, Query{expr: e, text: format(e)})
	}
	return all
}

// Equal returns the term that holds for tasks which have one of the values in a field of type Word or Set, or
// contain one of them in a Text.
func Equal(f Field, values ...string) Term {
	t := Term{Field: f}
	for _, s := range values {
		t.Values = append(t.Values, exactly(f, s))
	}
	return t
}

// Between returns the term that holds for tasks which have a value from low up to, but not including, high in
// a field of type Time, Duration or Number.
func Between(f Field, low, high int64) Term {
	return Term{f, []Value{{Match: Range, Min: Bound{Set: true, N: low}, Max: Bound{Set: true, N: high - 1}}}}
}

// Has reports whether the query has all values of the term among those of a condition on its field.
func (q Query) Has(t Term) bool {
	i, held := q.find(t.Field)
	if i < 0 {
		return false
	}
	return !slices.ContainsFunc(t.Values, func(v Value) bool { return !slices.Contains(held.Values, v) })
}

// With returns the query with the values of the term as further alternatives of the condition on its field, or
// with a new condition if there is none. Free text has no alternatives: it is joined by and.
func (q Query) With(t Term) Query {
	all := slices.Clone(q.conditions())
	if i, held := q.find(t.Field); i >= 0 && t.Field != Any {
		all[i] = Term{t.Field, slices.Concat(held.Values, t.Values)}
	} else {
		all = append(all, t)
	}
	return New(And(all))
}

// Without returns the query without the values of the term among those of its field, and without the condition
// if none is left.
func (q Query) Without(t Term) Query {
	i, held := q.find(t.Field)
	if i < 0 {
		return q
	}
	all := slices.Clone(q.conditions())
	left := slices.DeleteFunc(slices.Clone(held.Values), func(v Value) bool { return slices.Contains(t.Values, v) })
	if len(left) > 0 {
		all[i] = Term{t.Field, left}
	} else {
		all = slices.Delete(all, i, i+1)
	}
	return New(And(all))
}

// Toggle returns the query without the term if it has it, else with it.
func (q Query) Toggle(t Term) Query {
	if q.Has(t) {
		return q.Without(t)
	}
	return q.With(t)
}

// Drop returns the query without its conditions on a field.
func (q Query) Drop(f Field) Query {
	return New(And(slices.DeleteFunc(slices.Clone(q.conditions()), func(e Expr) bool {
		t, ok := e.(Term)
		return ok && t.Field == f
	})))
}

// find returns the first condition on a field, and its place among all conditions, negative if there is none.
func (q Query) find(f Field) (int, Term) {
	for i, e := range q.conditions() {
		if t, ok := e.(Term); ok && t.Field == f {
			return i, t
		}
	}
	return -1, Term{}
}
