package idempotency

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// entry is a member of an object to be sorted: the first 8 bytes of its key as a number, and its place.
type entry struct {
	start uint64
	at    int
}

// sort returns the object of keys and items, which it copies. Of equal keys the last one counts.
func (p *parser) sort(keys []string, items []Value) Value {
	o := p.order[:0]
	for i, key := range keys {
		o = append(o, entry{begin(key), i})
	}
	p.order = o
	byKey := func(a, b entry) int {
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		return cmp.Or(strings.Compare(keys[a.at], keys[b.at]), a.at-b.at)
	}
	if !slices.IsSortedFunc(o, byKey) {
		slices.SortFunc(o, byKey)
	}
	v := &parts{keys: make([]string, 0, len(keys)), items: make([]Value, 0, len(keys))}
	for i, e := range o {
		if i+1 < len(o) && keys[o[i+1].at] == keys[e.at] {
			continue
		}
		v.keys, v.items = append(v.keys, keys[e.at]), append(v.items, items[e.at])
	}
	return Value{kind: isObject, parts: v}
}

// begin is the first 8 bytes of s, filled up with zeros, as a number that sorts as they do.
func begin(s string) (n uint64) {
	if len(s) >= 8 {
		return binary.BigEndian.Uint64([]byte(s[:8]))
	}
	for i := range len(s) {
		n |= uint64(s[i]) << (56 - 8*i)
	}
	return n
}
