package where

import (
	"strings"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/query"
)

// Range compiles values of a column of numbers.
func Range(column string, values []query.Value, now time.Time) Condition {
	list := make([]Condition, len(values))
	for i, v := range values {
		ends := []Condition{Exactly(column + " IS NOT NULL")}
		if v.Min.Set {
			ends = append(ends, Exactly(column+operator(">", v.Min), v.Min.At(now)))
		}
		if v.Max.Set {
			ends = append(ends, Exactly(column+operator("<", v.Max), v.Max.At(now)))
		}
		if column == "updated" {
			ends = append(ends, Exactly("updated <> 0"))
		}
		list[i] = And(ends...)
	}
	return Or(list...)
}

func operator(than string, b query.Bound) string {
	if b.Exclusive {
		return " " + than + " ?"
	}
	return " " + than + "= ?"
}

// IDs compiles values of a column that holds ids, by what selects one id and what selects those that begin with a text.
func IDs(column string, values []query.Value, is, begins func(column, text string) Condition) Condition {
	list := make([]Condition, len(values))
	for i, v := range values {
		switch {
		case v.Match == query.Exact:
			list[i] = is(column, v.Text)
		case IsWildcard(v):
			list[i] = Exactly(column + " IS NOT NULL")
		case v.Match == query.Pattern:
			head, rest, _ := strings.Cut(v.Text, "*")
			list[i] = begins(column, head)
			list[i].Exact = list[i].Exact && rest == ""
		default:
			list[i] = AtLeast(column + " IS NOT NULL")
		}
	}
	return Or(list...)
}

// Failure compiles ids of failure groups.
func Failure(values []query.Value) Condition {
	list := make([]Condition, len(values))
	for i, v := range values {
		id, ok := fingerprint.ParseID(v.Text)
		switch {
		case v.Match == query.Exact && ok:
			list[i] = Exactly("failure = ?", int64(id))
		case v.Match == query.Exact:
			list[i] = Never()
		default:
			list[i] = Condition{SQL: "failure IS NOT NULL", Exact: IsWildcard(v)}
		}
	}
	return Or(list...)
}

// is compiles values of query.Is.
func is(values []query.Value) Condition {
	list := make([]Condition, 0, len(values))
	for _, v := range values {
		switch v.Text {
		case query.IsActive:
			list = append(list, Exactly("final = 0"))
		case query.IsFinished:
			list = append(list, Exactly("final <> 0"))
		default:
			list = append(list, Exactly("flags <> 0 AND flags & ? <> 0", Flag(v.Text)))
		}
	}
	return Or(list...)
}

// Duplicates divides values of query.Dup into marks and calls.
func Duplicates(values []query.Value) (marks state.Duplicates, calls []state.CallID) {
	for _, v := range values {
		if call, ok := state.ParseCallID(v.Text); ok {
			calls = append(calls, call)
		}
		marks |= query.DupMarks(v.Text)
	}
	return marks, calls
}

// dup compiles values of query.Dup.
func dup(values []query.Value, terms Terms) Condition {
	marks, calls := Duplicates(values)
	var list []Condition
	if marks != 0 {
		list = append(list, Exactly("dup <> 0 AND dup & ? <> 0", int64(marks)))
	}
	for _, call := range calls {
		list = append(list, terms.Call(call))
	}
	return Or(list...)
}
