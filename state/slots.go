package state

import "math/bits"

// slots gives out indexes of chunks of slabChunk places, and knows which chunks hold nothing. Index 0 is never given out.
type slots struct {
	chunks []slotChunk
	open   []uint32 // chunks with a free place; the last one is used first
	used   int
	held   int // chunks with memory
	empty  int // of those, chunks that hold nothing
}

// slotChunk is which places of a chunk are taken, a bit each.
type slotChunk struct {
	taken [slabChunk / 64]uint64
	n     int
	held  bool // there is memory for it
}

const slabChunk = 1 << 10

// alloc returns a free index, and whether its chunk needs memory.
func (s *slots) alloc() (i uint32, fresh bool) {
	if len(s.open) == 0 {
		s.open = append(s.open, uint32(len(s.chunks)))
		s.chunks = append(s.chunks, slotChunk{})
		if len(s.chunks) == 1 {
			s.chunks[0].taken[0], s.chunks[0].n = 1, 1
		}
	}
	number := s.open[len(s.open)-1]
	c := &s.chunks[number]
	w := 0
	for c.taken[w] == 1<<64-1 {
		w++
	}
	bit := bits.TrailingZeros64(^c.taken[w])
	if c.held && c.vacant(number) {
		s.empty--
	}
	if fresh = !c.held; fresh {
		c.held = true
		s.held++
	}
	c.taken[w] |= 1 << bit
	if c.n++; c.n == slabChunk {
		s.open = s.open[:len(s.open)-1]
	}
	s.used++
	return number*slabChunk + uint32(w*64+bit), fresh
}

// release makes an index free, and reports whether the memory of its chunk is to be dropped. That of one chunk stays, so
// that one element that comes and goes costs no memory each time.
func (s *slots) release(i uint32) (drop bool) {
	number := i / slabChunk
	c := &s.chunks[number]
	c.taken[i%slabChunk/64] &^= 1 << (i % 64)
	if c.n--; c.n == slabChunk-1 {
		s.open = append(s.open, number)
	}
	s.used--
	if !c.vacant(number) {
		return false
	}
	if drop = s.empty > 0; drop {
		c.held = false
		s.held--
	} else {
		s.empty++
	}
	return drop
}

// vacant reports whether a chunk, whose number is given, holds nothing.
func (c *slotChunk) vacant(number uint32) bool { return c.n == 0 || number == 0 && c.n == 1 }
