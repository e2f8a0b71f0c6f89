// Package columns sorts the rows of tables by what they have in a column.
package columns

import (
	"cmp"
	"slices"
	"strings"
)

// Value is what a row has in a column: a number, a text, or a number with a text for equal ones.
type Value struct {
	Known  bool
	Number float64
	Text   string
}

// Number returns a number, unknown if it is nil.
func Number[N int64 | float64](n *N) Value {
	if n == nil {
		return Value{}
	}
	return Value{Known: true, Number: float64(*n)}
}

// Text returns a text, unknown if it is empty.
func Text(s string) Value { return Value{Known: s != "", Text: s} }

// Sort sorts rows by the column that order names, greatest first if it begins with -. Rows of which the value is unknown come
// last, and equal ones by name. The column name is that of names; value returns what a row has in the others.
func Sort[T any](rows []T, order string, name func(*T) string, value func(row *T, column string) Value) {
	column, descending := strings.CutPrefix(order, "-")
	type keyed struct {
		row   T
		name  string
		value Value
	}
	list := make([]keyed, len(rows))
	for i := range rows {
		k := keyed{row: rows[i], name: name(&rows[i])}
		if k.value = (Value{Known: true, Text: k.name}); column != "name" {
			k.value = value(&rows[i], column)
		}
		list[i] = k
	}
	slices.SortStableFunc(list, func(a, b keyed) int {
		if a.value.Known != b.value.Known {
			if a.value.Known {
				return -1
			}
			return 1
		}
		order := cmp.Or(cmp.Compare(a.value.Number, b.value.Number), cmp.Compare(a.value.Text, b.value.Text))
		if descending {
			order = -order
		}
		return cmp.Or(order, cmp.Compare(a.name, b.name))
	})
	for i := range list {
		rows[i] = list[i].row
	}
}
