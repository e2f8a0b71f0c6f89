package state

// slab holds records of one type in large chunks and names them by index. A T without pointers costs
// the garbage collector nothing, however many there are. Index 0 is never given out.
type slab[T any] struct {
	chunks [][]T
	free   []uint32
	used   uint32
}

const slabChunk = 1 << 10

// at returns record i. The pointer is valid until i is released.
func (s *slab[T]) at(i uint32) *T { return &s.chunks[i/slabChunk][i%slabChunk] }

// alloc returns the index of a zero record.
func (s *slab[T]) alloc() uint32 {
	if last := len(s.free) - 1; last >= 0 {
		i := s.free[last]
		s.free = s.free[:last]
		return i
	}
	s.used++
	if int(s.used/slabChunk) == len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, slabChunk))
	}
	return s.used
}

// release zeroes record i and makes its index free.
func (s *slab[T]) release(i uint32) {
	var zero T
	*s.at(i) = zero
	s.free = append(s.free, i)
}
