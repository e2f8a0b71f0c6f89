package state

import "sort"

// order keeps the tasks sorted by stamp in chunks of columns, so that finding a place is two binary
// searches, and filtering a million tasks is a scan of sequential memory.
type order struct {
	chunks [][]entry
	firsts []int64 // clock of each chunk's first entry
	size   int
	less   func(a, b uint32) bool // order of rows with equal clocks
}

// entry is what a filter needs to know of a task.
type entry struct {
	clock  int64
	row    uint32
	name   uint32
	worker uint32
	state  stateCode
	marks  marks
}

const orderChunk = 256

// before is the order: by clock, then whatever less says of the rows.
func (o *order) before(a, b entry) bool {
	if a.clock != b.clock {
		return a.clock < b.clock
	}
	return a.row != b.row && o.less(a.row, b.row)
}

// seek returns the place of the first entry that is not before the point sought, whose clock is given.
func (o *order) seek(clock int64, before func(entry) bool) (chunk, i int) {
	if len(o.chunks) == 0 {
		return 0, 0
	}
	// Begin at the last chunk whose first entry is before the point. Its clock decides, but where it is equal.
	chunk = max(sort.Search(len(o.firsts), func(k int) bool {
		if o.firsts[k] != clock {
			return o.firsts[k] > clock
		}
		return !before(o.chunks[k][0])
	})-1, 0)
	c := o.chunks[chunk]
	i = sort.Search(len(c), func(k int) bool { return !before(c[k]) })
	if i == len(c) && chunk < len(o.chunks)-1 {
		return chunk + 1, 0
	}
	return chunk, i
}

// find returns the place of e, or where it would go.
func (o *order) find(e entry) (chunk, i int) {
	return o.seek(e.clock, func(k entry) bool { return o.before(k, e) })
}

// insert adds e.
func (o *order) insert(e entry) {
	o.size++
	if len(o.chunks) == 0 {
		o.chunks = append(o.chunks, make([]entry, 0, orderChunk))
		o.firsts = append(o.firsts, e.clock)
	}
	chunk, i := len(o.chunks)-1, 0
	if last := o.chunks[chunk]; len(last) == 0 || o.before(last[len(last)-1], e) {
		i = len(last)
	} else {
		chunk, i = o.find(e)
	}
	c := o.chunks[chunk]
	if len(c) == orderChunk {
		chunk, i = o.split(chunk, i)
		c = o.chunks[chunk]
	}
	c = c[:len(c)+1]
	copy(c[i+1:], c[i:])
	c[i] = e
	o.chunks[chunk], o.firsts[chunk] = c, c[0].clock
}

// split makes room in a full chunk, at its end if that is where the next entry goes, and
// returns the new place of position i.
func (o *order) split(chunk, i int) (int, int) {
	c := o.chunks[chunk]
	at := len(c) / 2
	if i == len(c) {
		at = i
	}
	right := append(make([]entry, 0, orderChunk), c[at:]...)
	o.chunks[chunk] = c[:at]
	o.chunks = append(o.chunks, nil)
	copy(o.chunks[chunk+2:], o.chunks[chunk+1:])
	o.chunks[chunk+1] = right
	o.firsts = append(o.firsts, 0)
	copy(o.firsts[chunk+2:], o.firsts[chunk+1:])
	if len(right) > 0 {
		o.firsts[chunk+1] = right[0].clock
	}
	if i >= at {
		return chunk + 1, i - at
	}
	return chunk, i
}

// update replaces the entry of e's clock and row.
func (o *order) update(e entry) {
	chunk, i := o.find(e)
	if chunk >= len(o.chunks) || i >= len(o.chunks[chunk]) || o.chunks[chunk][i].row != e.row {
		panic("state: order has lost a row")
	}
	o.chunks[chunk][i] = e
}

// remove takes out the entry of e's clock and row.
func (o *order) remove(e entry) {
	chunk, i := o.find(e)
	if chunk >= len(o.chunks) || i >= len(o.chunks[chunk]) || o.chunks[chunk][i].row != e.row {
		panic("state: order has lost a row")
	}
	o.size--
	c := o.chunks[chunk]
	copy(c[i:], c[i+1:])
	c = c[:len(c)-1]
	o.chunks[chunk] = c
	if len(c) > 0 {
		o.firsts[chunk] = c[0].clock
	}
	if len(c) >= orderChunk/4 {
		return
	}
	if next := chunk + 1; next < len(o.chunks) && len(c)+len(o.chunks[next]) <= orderChunk/2 {
		o.join(chunk)
	} else if chunk > 0 && len(c)+len(o.chunks[chunk-1]) <= orderChunk/2 {
		o.join(chunk - 1)
	} else if len(c) == 0 {
		o.drop(chunk)
	}
}

// join moves the chunk after into chunk.
func (o *order) join(chunk int) {
	o.chunks[chunk] = append(o.chunks[chunk], o.chunks[chunk+1]...)
	if len(o.chunks[chunk]) > 0 {
		o.firsts[chunk] = o.chunks[chunk][0].clock
	}
	o.drop(chunk + 1)
	if len(o.chunks[chunk]) == 0 {
		o.drop(chunk)
	}
}

func (o *order) drop(chunk int) {
	o.chunks = append(o.chunks[:chunk], o.chunks[chunk+1:]...)
	o.firsts = append(o.firsts[:chunk], o.firsts[chunk+1:]...)
}

// newest yields the entries before the place in chunks, the newest chunk first. A chunk itself is sorted
// oldest first, and must not be kept.
func (o *order) newest(chunk, i int, yield func([]entry) bool) {
	for ; chunk >= 0 && chunk < len(o.chunks); chunk-- {
		if !yield(o.chunks[chunk][:i]) {
			return
		}
		if chunk > 0 {
			i = len(o.chunks[chunk-1])
		}
	}
}

// oldest yields the entry at the place and those after it in chunks, the oldest chunk first.
func (o *order) oldest(chunk, i int, yield func([]entry) bool) {
	for ; chunk < len(o.chunks); chunk, i = chunk+1, 0 {
		if !yield(o.chunks[chunk][i:]) {
			return
		}
	}
}

// end is the place after the newest entry.
func (o *order) end() (chunk, i int) {
	if chunk = len(o.chunks) - 1; chunk < 0 {
		return 0, 0
	}
	return chunk, len(o.chunks[chunk])
}
