package state

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/umbelhq/umbel/internal/truncate"
)

// textLog keeps the long fields of events in large chunks, oldest first, within a number of bytes.
// When it is full the oldest chunk goes, whole. Positions are never reused.
type textLog struct {
	chunks [][]byte
	first  int64 // number of chunks dropped so far
	keep   int   // most chunks
}

const (
	textChunk = 1 << 20
	// maxField bounds one text field. Celery cuts args, kwargs and result at 1,024 characters; exceptions
	// and tracebacks it does not cut at all.
	maxField = 64 << 10
)

func newTextLog(maxBytes int64) *textLog {
	return &textLog{keep: int(max(maxBytes/textChunk, 2))}
}

// reset drops everything. Positions begin at 1 again.
func (t *textLog) reset() {
	if len(t.chunks) > 0 {
		t.chunks = append(t.chunks[:0], t.chunks[0][:0])
	}
	t.first = 0
}

// add stores an entry and returns its position, above 0.
func (t *textLog) add(entry []byte) int64 {
	last := len(t.chunks) - 1
	if last < 0 || len(t.chunks[last])+len(entry) > textChunk {
		if len(t.chunks) == t.keep {
			t.chunks = append(t.chunks[:0], t.chunks[1:]...)
			t.first++
		}
		var chunk []byte // the first one grows: many clusters stay small
		if last >= 0 {
			chunk = make([]byte, 0, textChunk)
		}
		t.chunks = append(t.chunks, chunk)
		last = len(t.chunks) - 1
	}
	at := (t.first+int64(last))*textChunk + int64(len(t.chunks[last]))
	t.chunks[last] = append(t.chunks[last], entry...)
	return at + 1
}

// get returns what follows position at, nil if it was dropped or is 0.
func (t *textLog) get(at int64) []byte {
	if at == 0 {
		return nil
	}
	chunk := (at-1)/textChunk - t.first
	if chunk < 0 {
		return nil
	}
	return t.chunks[chunk][(at-1)%textChunk:]
}

// An entry holds the long fields of one event: the present fields and the null ones among them (uvarints), then the
// value of each present field of inText, in the order of the bits, numbers as in a saved event and texts as a length
// (uvarint) and bytes.
const inText = FieldArgs | FieldKwargs | FieldRootID | FieldParentID | FieldRetries | FieldETA | FieldExpires |
	FieldResult | FieldRuntime | FieldException | FieldTraceback | FieldClockOffset

// inEntry are the fields whose presence is worth an entry.
const inEntry = inText | FieldName | FieldQueue | FieldExchange | FieldRoutingKey

// appendEntry encodes the long fields of e. Texts are cut to maxField bytes.
func appendEntry(b []byte, e *Event) []byte {
	null := e.Null & e.Present
	b = binary.AppendUvarint(b, uint64(e.Present))
	b = binary.AppendUvarint(b, uint64(null))
	for left := e.Present &^ null & inText; left != 0; left &= left - 1 {
		f := left & -left
		if text := e.text(f); text != nil {
			b = appendText(b, truncate.Bytes(*text, maxField))
		} else {
			b = appendNumber(b, e, f)
		}
	}
	return b
}

// oversized reports whether some text of the event does not fit.
func (e *Event) oversized() bool {
	for left := e.Present &^ e.Null & inText; left != 0; left &= left - 1 {
		if s := e.text(left & -left); s != nil && len(*s) > maxField {
			return true
		}
	}
	return false
}

// fields returns the long fields of a record as an event, and whether none of their text is missing. If the entry was
// dropped, only the presence of what the record itself holds is set.
func (c *Cluster) fields(rec *record) (e Event, whole bool) {
	if b := c.text.get(rec.text); b != nil || rec.text == 0 {
		if b != nil {
			decodeEntry(&e, b)
		}
		return e, rec.flags&cut == 0
	}
	if k := c.routes.key(rec.route); rec.route != 0 {
		for _, f := range [...]struct {
			bit   Fields
			value string
		}{{FieldName, k.name}, {FieldQueue, k.queue}, {FieldExchange, k.exchange}, {FieldRoutingKey, k.routingKey}} {
			if f.value != "" {
				e.Present |= f.bit
			}
		}
	}
	if rec.kind == TaskSent || rec.kind == TaskReceived {
		e.Retries = int64(rec.n)
		e.Present |= FieldRetries
	}
	return e, false
}

// decodeEntry reads an entry, which may be followed by others.
func decodeEntry(e *Event, entry []byte) {
	r := byteReader[[]byte]{rest: entry}
	e.Present, e.Null = Fields(r.uvarint()), Fields(r.uvarint())
	for left := e.Present &^ e.Null & inText; left != 0; left &= left - 1 {
		f := left & -left
		if text := e.text(f); text != nil {
			*text = string(r.text())
		} else {
			r.number(e, f)
		}
	}
}

// entryContains reports whether any text of an entry contains lower, ignoring case.
func entryContains(entry []byte, lower string) bool {
	r := byteReader[[]byte]{rest: entry}
	present, null := Fields(r.uvarint()), Fields(r.uvarint())
	for left := present &^ null & inText; left != 0; left &= left - 1 {
		switch f := left & -left; f {
		case FieldRetries, FieldRuntime, FieldClockOffset:
			var e Event
			r.number(&e, f)
		default:
			if containsFold(r.text(), lower) {
				return true
			}
		}
	}
	return false
}

// containsFold reports whether text contains lower, which is in lower case, without regard to case. It
// allocates only where lower is not ASCII.
func containsFold(text []byte, lower string) bool {
	for i := range len(lower) {
		if lower[i] >= utf8.RuneSelf {
			return bytes.Contains(bytes.ToLower(text), []byte(lower))
		}
	}
	for i := 0; i+len(lower) <= len(text); i++ {
		n := 0
		for n < len(lower) && lowerASCII(text[i+n]) == lower[n] {
			n++
		}
		if n == len(lower) {
			return true
		}
	}
	return false
}

func lowerASCII(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
