package state

import "testing"

func TestSlabsKeepWhatIsHeld(t *testing.T) {
	t.Parallel()
	var s slab[uint64]
	var all []uint32
	for n := range uint64(10 * slabChunk) {
		i := s.alloc()
		if i == 0 || *s.at(i) != 0 {
			t.Fatalf("element %d is new and holds %d", i, *s.at(i))
		}
		*s.at(i) = n + 1
		all = append(all, i)
	}
	for n, i := range all {
		if n%3 != 0 {
			s.release(i)
		}
	}
	for range 100 { // what is free is given out again
		s.alloc()
	}
	for n, i := range all {
		if n%3 == 0 && *s.at(i) != uint64(n+1) {
			t.Fatalf("element %d holds %d, want %d", i, *s.at(i), n+1)
		}
	}
	if len(s.memory) > 11 {
		t.Errorf("%d chunks for %d elements", len(s.memory), 10*slabChunk)
	}
}

func TestSlabsDropTheMemoryOfEmptyChunks(t *testing.T) {
	t.Parallel()
	var s slab[uint64]
	var all []uint32
	for range 10 * slabChunk {
		all = append(all, s.alloc())
	}
	for _, i := range all {
		s.release(i)
	}
	held := 0
	for _, chunk := range s.memory {
		if chunk != nil {
			held++
		}
	}
	if held != 1 || s.used != 0 {
		t.Errorf("%d chunks are held for %d elements, want one for none", held, s.used)
	}
	chunk := &s.memory[s.alloc()/slabChunk][0]
	for range 3 {
		i := s.alloc()
		s.release(i)
		if &s.memory[i/slabChunk][0] != chunk {
			t.Error("an element that comes and goes costs memory each time")
		}
	}
}
