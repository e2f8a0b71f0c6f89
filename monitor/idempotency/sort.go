package idempotency

import (
	"cmp"
	"slices"
	"strings"
)

// entry is a member of an object to be sorted: its key, begun with the first 8 bytes as a number, and its place.
type entry struct {
	start uint64
	key   string
	at    int
}

// sort returns the object of keys and items, which it copies. Of equal keys the last one counts.
func (p *parser) sort(keys []string, items []Value) Value {
	o := p.order[:0]
	for i, key := range keys {
		o = append(o, entry{begin(key), key, i})
	}
	byKey := func(a, b entry) int {
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		return cmp.Or(strings.Compare(a.key, b.key), a.at-b.at)
	}
	if !slices.IsSortedFunc(o, byKey) {
		slices.SortFunc(o, byKey)
	}
	p.order = o
	v := Value{kind: isObject, keys: make([]string, 0, len(keys)), items: make([]Value, 0, len(keys))}
	for i, e := range o {
		if i+1 < len(o) && o[i+1].key == e.key {
			continue
		}
		v.keys, v.items = append(v.keys, e.key), append(v.items, items[e.at])
	}
	return v
}

// begin is the first 8 bytes of s, filled up with zeros, as a number that sorts as they do.
func begin(s string) (n uint64) {
	for i := range 8 {
		n <<= 8
		if i < len(s) {
			n |= uint64(s[i])
		}
	}
	return n
}
