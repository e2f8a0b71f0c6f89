package state

import (
	"hash/maphash"
	"iter"
)

// taskIndex finds the rows of tasks by their keys. It holds numbers alone, since the rows have the keys: half of what a map
// takes, and less of it to read, which counts where nothing is in a cache. Its parts grow one by one, so that no event waits
// for all.
type taskIndex struct {
	rows  *slab[row]
	seed  maphash.Seed // nobody can choose ids that get into each other's way
	size  int
	parts [indexParts]indexPart
}

const (
	indexParts    = 64
	firstCapacity = 8
)

// indexPart is a table of places, as many as a power of two. A key is at the place that its hash names, or after it with no empty
// place between.
type indexPart struct {
	places []place
	used   int
}

// place is the number of a row with the lower half of the hash of its key, 0 if it is empty.
type place uint64

func placeOf(hash uint64, i uint32) place { return place(hash<<32 | uint64(i)) }

func (p place) row() uint32 { return uint32(p) }

// home is the place that the hash names.
func (p place) home(mask int) int { return int(p>>32) & mask }

func (x *taskIndex) hash(k taskKey) (*indexPart, uint64) {
	h := maphash.Bytes(x.seed, k[:])
	return &x.parts[h>>58], h
}

// len returns how many keys there are.
func (x *taskIndex) len() int { return x.size }

// seek returns where a key is, or the empty place where it would go.
func (x *taskIndex) seek(p *indexPart, hash uint64, k taskKey) (at int, found bool) {
	mask := len(p.places) - 1
	like := placeOf(hash, 0)
	for at = like.home(mask); p.places[at] != 0; at = (at + 1) & mask {
		if s := p.places[at]; (s^like)>>32 == 0 && x.rows.at(s.row()).id == k {
			return at, true
		}
	}
	return at, false
}

// find returns the row of a key, 0 if there is none.
func (x *taskIndex) find(k taskKey) uint32 {
	p, h := x.hash(k)
	if p.used == 0 {
		return 0
	}
	if at, found := x.seek(p, h, k); found {
		return p.places[at].row()
	}
	return 0
}

// add adds the row of a key that is not there.
func (x *taskIndex) add(k taskKey, i uint32) {
	p, h := x.hash(k)
	if (p.used+1)*4 > len(p.places)*3 {
		p.grow()
	}
	p.put(placeOf(h, i))
	p.used++
	x.size++
}

// put puts s into the first empty place from its own on.
func (p *indexPart) put(s place) {
	mask := len(p.places) - 1
	at := s.home(mask)
	for p.places[at] != 0 {
		at = (at + 1) & mask
	}
	p.places[at] = s
}

func (p *indexPart) grow() {
	old := p.places
	p.places = make([]place, max(2*len(old), firstCapacity))
	for _, s := range old {
		if s != 0 {
			p.put(s)
		}
	}
}

// remove takes out a key that is there. What is after it moves up, unless that would be before its own place.
func (x *taskIndex) remove(k taskKey) {
	p, h := x.hash(k)
	empty, found := x.seek(p, h, k)
	if !found {
		panic("state: a row is missing from the index")
	}
	mask := len(p.places) - 1
	for at := (empty + 1) & mask; p.places[at] != 0; at = (at + 1) & mask {
		if home := p.places[at].home(mask); (at-home)&mask >= (at-empty)&mask {
			p.places[empty] = p.places[at]
			empty = at
		}
	}
	p.places[empty] = 0
	p.used--
	x.size--
}

// all yields every row. The index must not be changed meanwhile.
func (x *taskIndex) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i := range x.parts {
			for _, s := range x.parts[i].places {
				if s != 0 && !yield(s.row()) {
					return
				}
			}
		}
	}
}
