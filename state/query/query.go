package query

import (
	"time"

	"github.com/umbelhq/umbel/state"
)

// Query is a parsed query. The zero value matches every task.
type Query struct {
	expr Expr
	text string
}

// Error says what is wrong with a query, and where.
type Error struct {
	Offset, Length int    // bytes of the wrong token in the query
	Message        string // a sentence
	Nearest        string // the nearest known name, empty if there is none
}

func (e *Error) Error() string { return e.Message }

// Parse reads a query. Its error is an *Error.
func Parse(s string) (Query, error) { return Query{}, nil }

// Expr returns the expression, simplified, with values sorted: an empty And if it matches everything.
func (q Query) Expr() Expr {
	if q.expr == nil {
		return And{}
	}
	return q.expr
}

// String returns the one spelling of the query. Equal queries have equal spellings.
func (q Query) String() string { return q.text }

// And returns the query that matches where both do.
func (q Query) And(p Query) Query { return q }

// Match reports whether the task matches as of now.
func (q Query) Match(t *state.Task, now time.Time) bool { return false }

// Simple returns the query in terms that a cluster answers from its columns alone, false if it needs
// others: exact states, names, workers, and one root, joined by and.
func (q Query) Simple() (state.Query, bool) { return state.Query{}, false }
