// Package where makes conditions on the table of tasks from queries, as engines share them: the columns are named as the fields
// of package query are. Parameters are written as ?.
package where

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Condition is a part of a WHERE clause on tasks. One that is not exact selects more tasks than match, never fewer.
type Condition struct {
	SQL   string
	Args  []any
	Exact bool
}

// Exactly is a condition that selects the tasks that match.
func Exactly(sql string, args ...any) Condition { return Condition{sql, args, true} }

// AtLeast is a condition that selects the tasks that match and may select others.
func AtLeast(sql string, args ...any) Condition { return Condition{sql, args, false} }

// Always selects all tasks.
func Always() Condition { return Exactly("TRUE") }

// Undecided selects all tasks, of which any may match.
func Undecided() Condition { return AtLeast("TRUE") }

// Never selects no task.
func Never() Condition { return Exactly("FALSE") }

// IsTrue reports whether a condition selects all tasks.
func (c Condition) IsTrue() bool { return c.SQL == Always().SQL }

// And selects what all conditions select.
func And(list ...Condition) Condition { return join(" AND ", Always(), list) }

// Or selects what one of the conditions selects.
func Or(list ...Condition) Condition { return join(" OR ", Never(), list) }

func join(operator string, none Condition, list []Condition) Condition {
	switch len(list) {
	case 0:
		return none
	case 1:
		return list[0]
	}
	joined := Condition{Exact: true}
	parts := make([]string, len(list))
	for i, c := range list {
		parts[i] = "(" + c.SQL + ")"
		joined.Args = append(joined.Args, c.Args...)
		joined.Exact = joined.Exact && c.Exact
	}
	joined.SQL = strings.Join(parts, operator)
	return joined
}

// Terms compiles the terms on what engines store in ways of their own.
type Terms interface {
	// IDs compiles values of a column that holds ids.
	IDs(column string, values []query.Value) Condition
	// Call selects the tasks of a call.
	Call(id state.CallID) Condition
	// Word compiles a term on a field of few values.
	Word(ctx context.Context, t query.Term) (Condition, error)
	// Text compiles a term on texts.
	Text(ctx context.Context, t query.Term) (Condition, error)
}

// Compile compiles an expression as of now.
func Compile(ctx context.Context, e query.Expr, now time.Time, terms Terms) (Condition, error) {
	switch e := e.(type) {
	case query.And:
		list, err := compileAll(ctx, e, now, terms)
		return And(list...), err
	case query.Or:
		list, err := compileAll(ctx, e, now, terms)
		return Or(list...), err
	case query.Not:
		x, err := Compile(ctx, e.X, now, terms)
		if err != nil || !x.Exact {
			return Undecided(), err
		}
		x.SQL = "(" + x.SQL + ") IS NOT TRUE"
		return x, nil
	case query.Term:
		return compileTerm(ctx, e, now, terms)
	default:
		return Undecided(), nil
	}
}

func compileAll(ctx context.Context, list []query.Expr, now time.Time, terms Terms) ([]Condition, error) {
	conditions := make([]Condition, len(list))
	for i, x := range list {
		var err error
		if conditions[i], err = Compile(ctx, x, now, terms); err != nil {
			return nil, err
		}
	}
	return conditions, nil
}

func compileTerm(ctx context.Context, t query.Term, now time.Time, terms Terms) (Condition, error) {
	column := Column(t.Field)
	switch {
	case t.Field == query.ID || t.Field == query.Parent:
		return terms.IDs(column, t.Values), nil
	case t.Field == query.Root:
		return Or(terms.IDs(column, t.Values), terms.IDs("id", t.Values)), nil
	case t.Field == query.Failure:
		return Failure(t.Values), nil
	case t.Field == query.State || t.Field.Type() == query.Word:
		return terms.Word(ctx, t)
	case t.Field == query.Is:
		return is(t.Values), nil
	case t.Field == query.Dup:
		return dup(t.Values, terms), nil
	case t.Field == query.Outbox || t.Field == query.Cluster || t.Field.Causal():
		return Never(), nil // not resolved
	case t.Field.Type() == query.Text:
		return terms.Text(ctx, t)
	default:
		return Range(column, t.Values, now), nil
	}
}

// Column returns the column of tasks that a field is in: the one of its name.
func Column(f query.Field) string {
	if f == query.Any {
		return "name"
	}
	return f.String()
}

// Matcher returns a function that reports whether a term matches a task with a text in its field.
func Matcher(t query.Term) func(text string) bool {
	q := query.New(t)
	switch t.Field {
	case query.State, query.Is: // values that the state decides
		return func(text string) bool { return q.Match(&state.Task{State: state.State(text)}, time.Time{}) }
	case query.Any: // all texts are compared alike
		return Matcher(query.Term{Field: query.Args, Values: t.Values})
	case query.Args:
		return func(text string) bool { return q.Match(&state.Task{Args: &text}, time.Time{}) }
	default: // words too
		q = query.New(query.Term{Field: query.Name, Values: t.Values})
		return func(text string) bool { return q.Match(&state.Task{Name: &text}, time.Time{}) }
	}
}

// IsWildcard reports whether a value matches every text.
func IsWildcard(v query.Value) bool { return v.Match == query.Pattern && v.Text == "*" }

// AllExact reports whether each value matches one text.
func AllExact(values []query.Value) bool {
	return !slices.ContainsFunc(values, func(v query.Value) bool { return v.Match != query.Exact })
}

// Parts returns texts that are in every text that a value matches.
func Parts(v query.Value) []string {
	if v.Match == query.Pattern {
		return strings.Split(v.Text, "*")
	}
	return []string{v.Text}
}
