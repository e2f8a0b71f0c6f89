package state

// slab holds records of one type in large chunks and names them by index. A T without pointers costs
// the garbage collector nothing, however many there are. Index 0 is never given out. Chunks that hold nothing any more
// are dropped.
type slab[T any] struct {
	slots
	memory [][]T
}

// at returns record i. The pointer is valid until i is released.
func (s *slab[T]) at(i uint32) *T { return &s.memory[i/slabChunk][i%slabChunk] }

// alloc returns the index of a zero record.
func (s *slab[T]) alloc() uint32 {
	i, fresh := s.slots.alloc()
	if fresh {
		s.memory = withChunk(s.memory, i, slabChunk)
	}
	return i
}

// release zeroes record i and makes its index free.
func (s *slab[T]) release(i uint32) {
	var zero T
	*s.at(i) = zero
	if s.slots.release(i) {
		s.memory[i/slabChunk] = nil
	}
}

// withChunk gives the chunk of index i memory for n elements.
func withChunk[T any](memory [][]T, i uint32, n int) [][]T {
	if int(i/slabChunk) == len(memory) {
		memory = append(memory, nil)
	}
	memory[i/slabChunk] = make([]T, n)
	return memory
}

// byteSlab is a slab of byte strings of one width.
type byteSlab struct {
	slots
	width  int
	memory [][]byte
}

// at returns the bytes of index i. They are valid until i is released.
func (s *byteSlab) at(i uint32) []byte {
	from := int(i%slabChunk) * s.width
	return s.memory[i/slabChunk][from : from+s.width]
}

func (s *byteSlab) alloc() uint32 {
	i, fresh := s.slots.alloc()
	if fresh {
		s.memory = withChunk(s.memory, i, slabChunk*s.width)
	}
	return i
}

func (s *byteSlab) release(i uint32) {
	if s.slots.release(i) {
		s.memory[i/slabChunk] = nil
	}
}
