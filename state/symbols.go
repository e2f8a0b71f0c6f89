package state

// table interns keys as small numbers, so that records can be pointer-free. Number 0 is «none»; once
// the table holds limit keys, new ones become other. Keys are counted by use and freed with
// their last one.
type table[K comparable] struct {
	numbers map[K]uint32
	items   []item[K]
	free    []uint32
	limit   int
	capped  uint64 // acquisitions that returned other
	clone   func(K) K
}

type item[K comparable] struct {
	key  K
	refs int32
}

const other uint32 = 1

// newTable returns a table of at most limit keys besides other. clone copies a key before it is stored.
func newTable[K comparable](limit int, otherKey K, clone func(K) K) *table[K] {
	t := &table[K]{numbers: make(map[K]uint32), items: make([]item[K], 2, 64), limit: limit, clone: clone}
	t.items[other].key = otherKey
	return t
}

// acquire returns the number of k and counts one more use of it.
func (t *table[K]) acquire(k K) uint32 {
	if n, ok := t.numbers[k]; ok {
		t.items[n].refs++
		return n
	}
	if k == t.items[other].key {
		return other
	}
	if len(t.numbers) >= t.limit {
		t.capped++
		return other
	}
	k = t.clone(k)
	var n uint32
	if last := len(t.free) - 1; last >= 0 {
		n, t.free = t.free[last], t.free[:last]
		t.items[n] = item[K]{key: k, refs: 1}
	} else {
		n = uint32(len(t.items))
		t.items = append(t.items, item[K]{key: k, refs: 1})
	}
	t.numbers[k] = n
	return n
}

// retain counts one more use of n.
func (t *table[K]) retain(n uint32) {
	if n > other {
		t.items[n].refs++
	}
}

// release counts one use less of n and frees it at none.
func (t *table[K]) release(n uint32) {
	if n <= other {
		return
	}
	it := &t.items[n]
	if it.refs--; it.refs == 0 {
		delete(t.numbers, it.key)
		*it = item[K]{}
		t.free = append(t.free, n)
	}
}

// lookup returns the number of k, 0 if it is not in use.
func (t *table[K]) lookup(k K) uint32 {
	if k == t.items[other].key {
		return other
	}
	return t.numbers[k]
}

// key returns the key of n.
func (t *table[K]) key(n uint32) K { return t.items[n].key }
