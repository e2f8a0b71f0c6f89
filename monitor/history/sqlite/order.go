package sqlite

import (
	"cmp"
	"math"
	"strings"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// key is the place of a row in an order. Rows with equal keys are told apart by their stamps and ids.
type key struct {
	value  int64 // of the column that the list is sorted by, 0 if it is sorted by stamp
	clock  int64
	micros int64
}

// order is the order in which rows are walked.
type order struct {
	column     string // empty for the order of stamps
	field      query.Field
	descending bool
}

// newOrder returns the order that leads away from the top of a list, or, if newer, towards it.
func newOrder(s query.Sort, newer bool) order {
	o := order{descending: s.Ascending == newer}
	if s.Field != 0 {
		o.field, o.column = s.Field, columns[s.Field]
	}
	return o
}

// index is the one that has all rows in this order.
func (o order) index() source {
	if o.column == "" {
		return source{index: "tasks_by_clock", where: "TRUE", sorted: true}
	}
	return source{index: "tasks_by_" + o.column, where: o.column + " IS NOT NULL", sorted: true}
}

// value is the expression of key.value.
func (o order) value() string { return cmp.Or(o.column, "0") }

// by is an ORDER BY clause over columns of a key. Those of an index are value and clock; micros needs the row.
func (o order) by(columns ...string) string {
	direction := " ASC"
	if o.descending {
		direction = " DESC"
	}
	if o.column == "" {
		columns = columns[1:]
	}
	return " ORDER BY " + strings.Join(columns, direction+", ") + direction
}

// than is the operator by which the next value compares with one before it, or, if inclusive, with itself.
func (o order) than(inclusive bool) string {
	switch {
	case o.descending && inclusive:
		return " <= "
	case o.descending:
		return " < "
	case inclusive:
		return " >= "
	default:
		return " > "
	}
}

// beyond holds of rows that come after k, or, if inclusive, at k.
func (o order) beyond(k key, inclusive bool) condition {
	strict, loose := ">", ">="
	if o.descending {
		strict, loose = "<", "<="
	}
	last := strict
	if inclusive {
		last = loose
	}
	c := condition{
		"clock " + loose + " ? AND (clock " + strict + " ? OR micros " + last + " ?)",
		[]any{k.clock, k.clock, k.micros},
		true,
	}
	if o.column != "" {
		c.sql = o.column + " " + loose + " ? AND (" + o.column + " " + strict + " ? OR (" + c.sql + "))"
		c.args = append([]any{k.value, k.value}, c.args...)
	}
	return c
}

// until holds of rows that come before k or have its value and clock.
func (o order) until(k key) condition {
	strict, loose := "<", "<="
	if o.descending {
		strict, loose = ">", ">="
	}
	c := condition{"clock " + loose + " ?", []any{k.clock}, true}
	if o.column != "" {
		c.sql = o.column + " " + loose + " ? AND (" + o.column + " " + strict + " ? OR " + c.sql + ")"
		c.args = append([]any{k.value, k.value}, c.args...)
	}
	return c
}

// last returns the key behind all keys with this one's value and clock.
func (o order) last(k key) key {
	k.micros = math.MaxInt64
	if o.descending {
		k.micros = math.MinInt64
	}
	return k
}

// compare orders keys as the order does.
func (o order) compare(a, b key) int {
	c := cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.clock, b.clock), cmp.Compare(a.micros, b.micros))
	if o.descending {
		return -c
	}
	return c
}

// comparePositions orders positions as the order does.
func (o order) comparePositions(a, b state.Position) int {
	if o.descending {
		return -a.Compare(b)
	}
	return a.Compare(b)
}

// keyOf is the key of a position.
func (o order) keyOf(p state.Position) key {
	k := key{clock: p.Stamp.Clock, micros: p.Stamp.Micros}
	if o.column != "" {
		k.value = p.Value
	}
	return k
}

// behind is the position after all rows with a key.
func (o order) behind(k key) state.Position {
	if !o.descending && k.micros < math.MaxInt64 {
		k.micros++
	}
	return state.Position{Value: k.value, Stamp: clock.Stamp{Clock: k.clock, Micros: k.micros}}
}
