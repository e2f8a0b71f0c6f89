package state

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/internal/uuidtext"
)

// An entry of the text log holds the long fields of one event: the present fields of inEntry and the null ones among them
// (uvarints), then the value of each present field of inText, in the order of the bits, numbers as in a saved event. A text
// begins with a uvarint, whose two lower bits say what follows, as the others are the length of.
const (
	textBytes  = iota // the bytes of the text
	textBefore        // nothing: the text begins that many bytes before the entry
	textUUID          // 16 bytes, of an id
	textOwnID         // nothing: it is the id of the task
	textForms
)

const inText = FieldArgs | FieldKwargs | FieldRootID | FieldParentID | FieldRetries | FieldETA | FieldExpires |
	FieldResult | FieldRuntime | FieldException | FieldTraceback | FieldClockOffset

// inEntry are the fields whose presence is worth an entry.
const inEntry = inText | FieldName | FieldQueue | FieldExchange | FieldRoutingKey

// maxNumbers is the most bytes that the numbers of an entry and the heads of its texts take.
const maxNumbers = 128

// add stores the long fields of an event and returns the position of the entry, above 0. Texts are cut to maxField bytes.
func (t *textLog) add(e *Event) int64 {
	present := e.Present & inEntry
	null := e.Null & present
	size := maxNumbers
	for left := present &^ null & inText; left != 0; left &= left - 1 {
		if text := e.text(left & -left); text != nil {
			size += min(len(*text), maxField)
		}
	}
	at := t.room(size)
	last := len(t.chunks) - 1
	b := t.chunks[last]
	start := len(b)
	b = binary.AppendUvarint(b, uint64(present))
	b = binary.AppendUvarint(b, uint64(null))
	for left := present &^ null & inText; left != 0; left &= left - 1 {
		f := left & -left
		text := e.text(f)
		if text == nil {
			b = appendNumber(b, e, f)
			continue
		}
		from := len(b)
		if b = appendEntryText(b, e, f, *text); b[from]%textForms == textOwnID {
			continue
		}
		if before, ok := t.refer(b, from); ok && before < start {
			b = binary.AppendUvarint(b[:from], uint64(start-before)*textForms+textBefore)
		}
	}
	t.chunks[last] = b
	return at
}

// appendEntryText encodes a text, ids as short as they can be.
func appendEntryText(b []byte, e *Event, f Fields, text string) []byte {
	if f == FieldRootID || f == FieldParentID {
		if text == e.ID {
			return append(b, textOwnID)
		}
		if k, digested := key(text); !digested {
			return append(append(b, textUUID), k[:]...)
		}
	}
	text = truncate.Bytes(text, maxField)
	b = binary.AppendUvarint(b, uint64(len(text))*textForms+textBytes)
	return append(b, text...)
}

// entryReader reads an entry, which may be followed by others.
type entryReader struct {
	byteReader[[]byte]
	log  *textLog
	at   int64
	uuid [36]byte // the last text, if it was such
}

// text returns the next text, and whether it is the id of the task instead. It is valid until the next call.
func (r *entryReader) text() (text []byte, own bool) {
	u := r.uvarint()
	if u%textForms == textBefore {
		before := byteReader[[]byte]{rest: r.log.before(r.at, u/textForms)}
		return r.form(&before, before.uvarint()), false
	}
	return r.form(&r.byteReader, u), u%textForms == textOwnID
}

func (r *entryReader) form(b *byteReader[[]byte], u uint64) []byte {
	switch u % textForms {
	case textBytes:
		return b.take(u / textForms)
	case textUUID:
		k := b.take(16)
		r.uuid = uuidtext.Format([16]byte(k))
		return r.uuid[:]
	default:
		return nil
	}
}

// read sets the long fields of an event of a task to those of the entry at a position. It reports whether the log has it.
func (t *textLog) read(e *Event, at int64, id string) bool {
	b := t.get(at)
	if b == nil {
		return false
	}
	r := entryReader{byteReader: byteReader[[]byte]{rest: b}, log: t, at: at}
	e.Present, e.Null = Fields(r.uvarint()), Fields(r.uvarint())
	for left := e.Present &^ e.Null & inText; left != 0; left &= left - 1 {
		f := left & -left
		if text := e.text(f); text == nil {
			r.number(e, f)
		} else if b, own := r.text(); own {
			*text = id
		} else {
			*text = string(b)
		}
	}
	return true
}

// contains reports whether the log has the entry at a position and any of its texts contains lower, ignoring case. The id of
// the task does not count.
func (t *textLog) contains(at int64, lower string) bool {
	r := entryReader{byteReader: byteReader[[]byte]{rest: t.get(at)}, log: t, at: at}
	if r.rest == nil {
		return false
	}
	present, null := Fields(r.uvarint()), Fields(r.uvarint())
	for left := present &^ null & inText; left != 0; left &= left - 1 {
		switch f := left & -left; f {
		case FieldRetries, FieldRuntime, FieldClockOffset:
			var e Event
			r.number(&e, f)
		default:
			if text, _ := r.text(); containsFold(text, lower) {
				return true
			}
		}
	}
	return false
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

// fields returns the long fields of a record of a task as an event, and whether none of their text is missing. If the
// entry was dropped, only the presence of what the record itself holds is set.
func (c *Cluster) fields(id string, rec *record) (e Event, whole bool) {
	if rec.text == 0 || c.text.read(&e, rec.text, id) {
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
