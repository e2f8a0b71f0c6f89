package state

import (
	"hash/maphash"
	"slices"
)

// textLog keeps the long fields of events in large chunks, oldest first, within a number of bytes.
// When it is full the oldest chunk goes, whole. Positions are never reused. A text that its chunk holds already is
// written as a reference: the arguments of a task-received are mostly those of its task-sent, and many tracebacks are alike.
type textLog struct {
	chunks [][]byte
	first  int64 // number of chunks dropped so far
	size   int64 // of a chunk
	keep   int   // most chunks

	once bool     // nothing is read twice: looking for references would not pay
	seen []uint32 // by hash, where in the newest chunk some text is, plus one
	seed maphash.Seed
}

const (
	minTextChunk = 1 << 20
	maxTextChunk = 4 << 20 // the larger, the more is alike
	textChunks   = 64      // of a log, at least, if they can be of the least size
	// maxField bounds one text field. Celery cuts args, kwargs and result at 1,024 characters; exceptions
	// and tracebacks it does not cut at all.
	maxField = 64 << 10

	minSeen, maxSeen = 1 << 8, 1 << 16
	textPerSeen      = 64 // bytes of a chunk for each place of seen
	minReferred      = 8  // a reference takes up to 4 bytes
)

func newTextLog(maxBytes int64) *textLog {
	t := &textLog{size: min(max(maxBytes/textChunks, minTextChunk), maxTextChunk), seed: maphash.MakeSeed()}
	t.limit(maxBytes)
	return t
}

// limit sets how many bytes the log holds at most, but for two chunks, and drops the oldest text beyond them.
func (t *textLog) limit(maxBytes int64) {
	t.keep = int(max(maxBytes/t.size, 2))
	if n := len(t.chunks) - t.keep; n > 0 {
		t.chunks = slices.Delete(t.chunks, 0, n)
		t.first += int64(n)
	}
}

// held returns the bytes of memory that the log takes.
func (t *textLog) held() (n int64) {
	for _, chunk := range t.chunks {
		n += int64(cap(chunk))
	}
	return n
}

// reset drops everything. Positions begin at 1 again.
func (t *textLog) reset() {
	if len(t.chunks) > 0 {
		t.chunks = append(t.chunks[:0], t.chunks[0][:0])
	}
	t.first = 0
	clear(t.seen)
}

// room makes room for n bytes in the newest chunk, and returns the position of what is written next.
func (t *textLog) room(n int) int64 {
	last := len(t.chunks) - 1
	if last < 0 || int64(len(t.chunks[last])+n) > t.size {
		if len(t.chunks) == t.keep {
			t.chunks = slices.Delete(t.chunks, 0, 1)
			t.first++
		}
		var chunk []byte // the first one grows: many clusters stay small
		if last >= 0 {
			chunk = make([]byte, 0, t.size)
		}
		t.chunks = append(t.chunks, chunk)
		last = len(t.chunks) - 1
		clear(t.seen)
	}
	if places := len(t.seen); !t.once && places < maxSeen && (places == 0 || len(t.chunks[last]) > places*textPerSeen) {
		t.seen = make([]uint32, max(2*places, minSeen))
	}
	return (t.first+int64(last))*t.size + int64(len(t.chunks[last])) + 1
}

// refer returns where in the newest chunk a text is, as it is encoded at its end from an offset on. It is false if the text
// is new; then it is found the next time.
func (t *textLog) refer(chunk []byte, from int) (at int, ok bool) {
	text := chunk[from:]
	if len(t.seen) == 0 || len(text) < minReferred {
		return 0, false
	}
	place := &t.seen[maphash.Bytes(t.seed, text)&uint64(len(t.seen)-1)]
	if at = int(*place) - 1; at >= 0 && string(chunk[at:at+len(text)]) == string(text) {
		return at, true
	}
	*place = uint32(from + 1)
	return 0, false
}

// get returns what follows position at, nil if it was dropped or is 0.
func (t *textLog) get(at int64) []byte {
	if at == 0 {
		return nil
	}
	chunk := (at-1)/t.size - t.first
	if chunk < 0 {
		return nil
	}
	return t.chunks[chunk][(at-1)%t.size:]
}

// before returns n bytes before position at of the same chunk, and all that follows them.
func (t *textLog) before(at int64, n uint64) []byte {
	offset := (at - 1) % t.size
	if n > uint64(offset) {
		return nil
	}
	return t.chunks[(at-1)/t.size-t.first][uint64(offset)-n:]
}
