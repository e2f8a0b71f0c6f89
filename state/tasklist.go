package state

import "sort"

// taskList keeps the tasks sorted by stamp in chunks of columns, so that finding a place is two binary
// searches, and filtering a million tasks is a scan of sequential memory.
type taskList struct {
	chunks [][]listItem
	firsts []int64 // clock of each chunk's first item
	size   int
	spare  []listItem             // of the last chunk, once the list is empty: a Reader has one task at a time
	less   func(a, b uint32) bool // order of rows with equal clocks
}

// listItem is what a filter needs to know of a task.
type listItem struct {
	clock  int64
	row    uint32
	name   uint32
	worker uint32
	state  stateCode
	flags  rowFlags
}

const listChunk = 256

// before orders items by clock, then as less orders their rows.
func (l *taskList) before(a, b listItem) bool {
	if a.clock != b.clock {
		return a.clock < b.clock
	}
	return a.row != b.row && l.less(a.row, b.row)
}

// seek returns the place of the first item that is not before the point sought, whose clock is given.
func (l *taskList) seek(clock int64, before func(listItem) bool) (chunk, i int) {
	if len(l.chunks) == 0 {
		return 0, 0
	}
	// Begin at the last chunk whose first item is before the point. Its clock decides, but where it is equal.
	chunk = max(sort.Search(len(l.firsts), func(k int) bool {
		if l.firsts[k] != clock {
			return l.firsts[k] > clock
		}
		return !before(l.chunks[k][0])
	})-1, 0)
	c := l.chunks[chunk]
	i = sort.Search(len(c), func(k int) bool { return !before(c[k]) })
	if i == len(c) && chunk < len(l.chunks)-1 {
		return chunk + 1, 0
	}
	return chunk, i
}

// find returns the place of e, or where it would go. Few items have equal clocks: where only clocks need to be compared, two
// plain searches do.
func (l *taskList) find(e listItem) (chunk, i int) {
	from, to := 0, len(l.firsts)
	for from < to {
		if k := int(uint(from+to) >> 1); l.firsts[k] <= e.clock {
			from = k + 1
		} else {
			to = k
		}
	}
	if from > 0 && l.firsts[from-1] < e.clock {
		c := l.chunks[from-1]
		low, high := 0, len(c)
		for low < high {
			if k := int(uint(low+high) >> 1); c[k].clock < e.clock {
				low = k + 1
			} else {
				high = k
			}
		}
		if low < len(c) && (c[low].clock > e.clock || c[low].row == e.row) {
			return from - 1, low
		}
	}
	return l.seek(e.clock, func(k listItem) bool { return l.before(k, e) })
}

// insert adds e.
func (l *taskList) insert(e listItem) {
	l.size++
	if len(l.chunks) == 0 {
		if l.spare == nil {
			l.spare = make([]listItem, 0, listChunk)
		}
		l.chunks, l.spare = append(l.chunks, l.spare), nil
		l.firsts = append(l.firsts, e.clock)
	}
	chunk, i := len(l.chunks)-1, 0
	if last := l.chunks[chunk]; len(last) == 0 || l.before(last[len(last)-1], e) {
		i = len(last)
	} else {
		chunk, i = l.find(e)
	}
	c := l.chunks[chunk]
	if len(c) == listChunk {
		chunk, i = l.split(chunk, i)
		c = l.chunks[chunk]
	}
	c = c[:len(c)+1]
	copy(c[i+1:], c[i:])
	c[i] = e
	l.chunks[chunk], l.firsts[chunk] = c, c[0].clock
}

// split makes room in a full chunk, at its end if that is where the next item goes, and
// returns the new place of position i.
func (l *taskList) split(chunk, i int) (int, int) {
	c := l.chunks[chunk]
	at := len(c) / 2
	if i == len(c) {
		at = i
	}
	right := append(make([]listItem, 0, listChunk), c[at:]...)
	l.chunks[chunk] = c[:at]
	l.chunks = append(l.chunks, nil)
	copy(l.chunks[chunk+2:], l.chunks[chunk+1:])
	l.chunks[chunk+1] = right
	l.firsts = append(l.firsts, 0)
	copy(l.firsts[chunk+2:], l.firsts[chunk+1:])
	if len(right) > 0 {
		l.firsts[chunk+1] = right[0].clock
	}
	if i >= at {
		return chunk + 1, i - at
	}
	return chunk, i
}

// update replaces the item of e's clock and row.
func (l *taskList) update(e listItem) {
	chunk, i := l.find(e)
	if chunk >= len(l.chunks) || i >= len(l.chunks[chunk]) || l.chunks[chunk][i].row != e.row {
		panic("state: a row is missing from the list")
	}
	l.chunks[chunk][i] = e
}

// remove takes out the item of e's clock and row.
func (l *taskList) remove(e listItem) {
	chunk, i := l.find(e)
	if chunk >= len(l.chunks) || i >= len(l.chunks[chunk]) || l.chunks[chunk][i].row != e.row {
		panic("state: a row is missing from the list")
	}
	l.size--
	c := l.chunks[chunk]
	copy(c[i:], c[i+1:])
	c = c[:len(c)-1]
	l.chunks[chunk] = c
	if len(c) > 0 {
		l.firsts[chunk] = c[0].clock
	}
	if len(c) >= listChunk/4 {
		return
	}
	if next := chunk + 1; next < len(l.chunks) && len(c)+len(l.chunks[next]) <= listChunk/2 {
		l.join(chunk)
	} else if chunk > 0 && len(c)+len(l.chunks[chunk-1]) <= listChunk/2 {
		l.join(chunk - 1)
	} else if len(c) == 0 {
		l.drop(chunk)
	}
}

// join moves the chunk after into chunk.
func (l *taskList) join(chunk int) {
	l.chunks[chunk] = append(l.chunks[chunk], l.chunks[chunk+1]...)
	if len(l.chunks[chunk]) > 0 {
		l.firsts[chunk] = l.chunks[chunk][0].clock
	}
	l.drop(chunk + 1)
	if len(l.chunks[chunk]) == 0 {
		l.drop(chunk)
	}
}

func (l *taskList) drop(chunk int) {
	if len(l.chunks) == 1 && cap(l.chunks[chunk]) == listChunk {
		l.spare = l.chunks[chunk][:0]
	}
	l.chunks = append(l.chunks[:chunk], l.chunks[chunk+1:]...)
	l.firsts = append(l.firsts[:chunk], l.firsts[chunk+1:]...)
}

// newest yields the items before the place in chunks, the newest chunk first. A chunk itself is sorted
// oldest first, and must not be kept.
func (l *taskList) newest(chunk, i int, yield func([]listItem) bool) {
	for ; chunk >= 0 && chunk < len(l.chunks); chunk-- {
		if !yield(l.chunks[chunk][:i]) {
			return
		}
		if chunk > 0 {
			i = len(l.chunks[chunk-1])
		}
	}
}

// oldest yields the item at the place and those after it in chunks, the oldest chunk first.
func (l *taskList) oldest(chunk, i int, yield func([]listItem) bool) {
	for ; chunk < len(l.chunks); chunk, i = chunk+1, 0 {
		if !yield(l.chunks[chunk][i:]) {
			return
		}
	}
}

// end is the place after the newest item.
func (l *taskList) end() (chunk, i int) {
	if chunk = len(l.chunks) - 1; chunk < 0 {
		return 0, 0
	}
	return chunk, len(l.chunks[chunk])
}
