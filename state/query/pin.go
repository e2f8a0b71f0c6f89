package query

import (
	"slices"
	"time"
)

// Pin returns the query with relative times replaced by what they are as of now. A span of time that began some time ago
// and is open ends now, unless it is of times that may be ahead.
func (q Query) Pin(now time.Time) Query {
	return New(replace(q.Expr(), func(t Term) Expr {
		if t.Field.Type() != Time {
			return t
		}
		t.Values = slices.Clone(t.Values)
		for i := range t.Values {
			v := &t.Values[i]
			if v.Min.Relative && !v.Max.Set && t.Field != ETA && t.Field != Expires {
				v.Max = Bound{Set: true, Relative: true}
				v.Min.Exclusive = false // as only open spans are
			}
			for _, b := range []*Bound{&v.Min, &v.Max} {
				b.N, b.Relative = b.At(now), false
			}
		}
		return t
	}))
}
