package query

import (
	"slices"
	"strings"
)

// UnknownTaskError says that a query asks what is causally related to a task of which nothing is known.
type UnknownTaskError struct{ ID string }

// Error returns a sentence.
func (e *UnknownTaskError) Error() string {
	return "there is no event of task " + e.ID + ", so nothing is known to come before or after it"
}

// In returns the error with its place in the text of the query.
func (e *UnknownTaskError) In(text string) *Error {
	return &Error{Offset: max(strings.Index(text, e.ID), 0), Length: len(e.ID), Message: e.Error()}
}

// Resolve returns the query with its terms on Outbox and on causal fields replaced by the ids that they stand for: they
// depend on more than a task. Unresolved, they match nothing. ids returns those of a value, and false to leave the terms
// of a field.
func (q Query) Resolve(ids func(f Field, value string) ([]string, bool)) Query {
	if !q.Mentions(Outbox) && !q.Causal() {
		return q
	}
	return New(resolve(q.Expr(), ids))
}

// Causal reports whether the query has a condition on a causal field.
func (q Query) Causal() bool {
	return q.Mentions(Before) || q.Mentions(After) || q.Mentions(Concurrent) || q.Mentions(Cone)
}

func resolve(e Expr, ids func(Field, string) ([]string, bool)) Expr {
	return replace(e, func(t Term) Expr {
		if t.Field != Outbox && !t.Field.Causal() {
			return t
		}
		list := Or{}
		for _, v := range t.Values {
			found, ok := ids(t.Field, v.Text)
			if !ok {
				return t
			}
			if len(found) == 0 {
				found = []string{""} // matches no task
			}
			x := Expr(Equal(ID, found...))
			if t.Field == Outbox && v.Text == "unreceived" { // events tell
				known := []Value{{Match: Range}}
				x = And{x, Not{Term{Received, known}}, Not{Term{Started, known}}, Not{Term{Finished, known}}}
			}
			list = append(list, x)
		}
		if len(list) == 1 {
			return list[0]
		}
		return list
	})
}

// replace returns an expression with each of its terms replaced.
func replace(e Expr, by func(Term) Expr) Expr {
	all := func(list []Expr) []Expr {
		list = slices.Clone(list)
		for i := range list {
			list[i] = replace(list[i], by)
		}
		return list
	}
	switch e := e.(type) {
	case And:
		return And(all(e))
	case Or:
		return Or(all(e))
	case Not:
		return Not{replace(e.X, by)}
	case Term:
		return by(e)
	default:
		return e
	}
}
