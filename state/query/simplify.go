package query

import (
	"cmp"
	"slices"
	"strings"
)

// simplify returns an expression that matches the same, in the one form that equal queries have: flat,
// sorted, without repetition.
func simplify(e Expr) Expr {
	switch e := e.(type) {
	case And:
		return simplifyAnd(e)
	case Or:
		return simplifyOr(e)
	case Not:
		x := simplify(e.X)
		if n, ok := x.(Not); ok {
			return n.X
		}
		return Not{x}
	case Term:
		return simplifyTerm(e)
	default:
		return And{}
	}
}

func simplifyAnd(e And) Expr {
	all := And{}
	for _, x := range e {
		x = simplify(x)
		if nested, ok := x.(And); ok {
			all = append(all, nested...)
		} else {
			all = append(all, x)
		}
	}
	all = sorted(all)
	if len(all) == 1 {
		return all[0]
	}
	return all
}

func simplifyOr(e Or) Expr {
	var some Or
	for _, x := range e {
		switch x := simplify(x).(type) {
		case Or:
			some = append(some, x...)
		case And:
			if len(x) == 0 {
				return And{} // whatever else there is
			}
			some = append(some, x)
		default:
			some = append(some, x)
		}
	}
	some = sorted(merge(some))
	if len(some) == 1 {
		return some[0]
	}
	return some
}

// merge joins terms of an Or that look at one field.
func merge(some Or) Or {
	var merged Or
	at := map[Field]int{}
	for _, x := range some {
		t, ok := x.(Term)
		if !ok || t.Field == Any { // free text has no list
			merged = append(merged, x)
			continue
		}
		if i, found := at[t.Field]; found {
			first, _ := merged[i].(Term)
			merged[i] = simplifyTerm(Term{t.Field, slices.Concat(first.Values, t.Values)})
			continue
		}
		at[t.Field] = len(merged)
		merged = append(merged, t)
	}
	return merged
}

// sorted sorts expressions by their text and drops what is there twice.
func sorted[S ~[]Expr](all S) S {
	slices.SortFunc(all, func(a, b Expr) int { return cmp.Compare(format(a), format(b)) })
	return slices.CompactFunc(all, func(a, b Expr) bool { return format(a) == format(b) })
}

// simplifyTerm sorts the values. A list of free text becomes an Or.
func simplifyTerm(t Term) Expr {
	if t.Field == Any && len(t.Values) > 1 {
		some := make(Or, len(t.Values))
		for i, v := range t.Values {
			some[i] = Term{Any, []Value{v}}
		}
		return simplifyOr(some)
	}
	values := make([]Value, len(t.Values))
	for i, v := range t.Values {
		if v.Match == Range {
			v.Min, v.Max = closed(v.Min, v.Max)
		}
		values[i] = v
	}
	text := func(v Value) string { return formatValue(t.Field, v) }
	slices.SortFunc(values, func(a, b Value) int { return strings.Compare(text(a), text(b)) })
	return Term{t.Field, slices.CompactFunc(values, func(a, b Value) bool { return text(a) == text(b) })}
}

// closed makes the ends of a range inclusive if it has both: all values are whole.
func closed(low, high Bound) (Bound, Bound) {
	if !low.Set || !high.Set {
		return low, high
	}
	if low.Exclusive {
		low.N, low.Exclusive = low.N+1, false
	}
	if high.Exclusive {
		high.N, high.Exclusive = high.N-1, false
	}
	return low, high
}
