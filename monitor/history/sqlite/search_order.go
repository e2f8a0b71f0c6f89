package sqlite

import (
	"cmp"
	"math"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// sortKey sorts rows. Rows with equal keys are sorted by their stamps and ids once they are decoded.
type sortKey struct {
	value int64 // of the column that the list is sorted by, 0 if it is sorted by stamp
	clock int64
}

// sortOrder is the order in which rows are read.
type sortOrder struct {
	column     string // empty for the order of stamps
	field      query.Field
	descending bool
}

// newOrder returns the order from the top of a list down, or, if newer, up.
func newOrder(s query.Sort, newer bool) sortOrder {
	o := sortOrder{descending: s.Ascending == newer}
	if s.Field.Sortable() {
		o.field, o.column = s.Field, where.Column(s.Field)
	}
	return o
}

// index returns the source of all rows in this order.
func (o sortOrder) index() source {
	if o.column == "" {
		return source{index: "tasks_by_clock", where: "TRUE", sorted: true}
	}
	return source{index: "tasks_by_" + o.column, where: o.column + " IS NOT NULL", sorted: true}
}

// value is the expression for sortKey.value.
func (o sortOrder) value() string { return cmp.Or(o.column, "0") }

// orderBy returns an ORDER BY clause.
func (o sortOrder) orderBy(value, clock string) string {
	direction := ""
	if o.descending {
		direction = " DESC"
	}
	if o.column == "" {
		return " ORDER BY " + clock + direction
	}
	return " ORDER BY " + value + direction + ", " + clock + direction
}

// after selects rows after k, or, if inclusive, at k.
func (o sortOrder) after(k sortKey, inclusive bool) where.Condition {
	strict := ">"
	if o.descending {
		strict = "<"
	}
	last := strict
	if inclusive {
		last += "="
	}
	if o.column == "" {
		return where.Exactly("clock "+last+" ?", k.clock)
	}
	return where.Exactly(o.column+" "+strict+"= ? AND ("+o.column+" "+strict+" ? OR clock "+last+" ?)", k.value, k.value, k.clock)
}

// compare orders keys as the order does.
func (o sortOrder) compare(a, b sortKey) int {
	c := cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.clock, b.clock))
	if o.descending {
		return -c
	}
	return c
}

// comparePositions orders positions as the order does.
func (o sortOrder) comparePositions(a, b state.Position) int {
	if o.descending {
		return -a.Compare(b)
	}
	return a.Compare(b)
}

// keyOf is the key of a position.
func (o sortOrder) keyOf(p state.Position) sortKey {
	k := sortKey{clock: p.Stamp.Clock}
	if o.column != "" {
		k.value = p.Value
	}
	return k
}

// positionAfter is the position after all rows with a key.
func (o sortOrder) positionAfter(k sortKey) state.Position {
	p := state.Position{Value: k.value, Stamp: clock.Stamp{Clock: k.clock, Micros: math.MaxInt64}}
	if o.descending {
		p.Stamp.Micros = math.MinInt64
	}
	return p
}
