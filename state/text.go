package state

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// textLog keeps the long fields of events in large chunks, oldest first, within a number of bytes.
// When it is full the oldest chunk goes, whole. Positions are never reused.
type textLog struct {
	chunks [][]byte
	first  int64 // number of chunks dropped so far
	keep   int   // chunks kept at most
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

// reset drops everything. What was stored before is gone, and positions begin anew.
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

// An entry is: the present fields (uvarint), the null ones among them (uvarint), then, where present and not
// null, retries (zigzag varint), runtime (8 bytes of float64, little endian) and the texts in the order of
// their bits (uvarint length, bytes).
const inText = FieldArgs | FieldKwargs | FieldRootID | FieldParentID | FieldRetries | FieldETA | FieldExpires |
	FieldResult | FieldRuntime | FieldException | FieldTraceback

// inEntry are the fields whose presence is worth an entry.
const inEntry = inText | FieldName | FieldQueue | FieldExchange | FieldRoutingKey

// fields are the values of an entry.
type fields struct {
	present, null                                                Fields
	args, kwargs, root, parent, eta, expires, result, exc, trace string
	retries                                                      int64
	runtime                                                      float64
}

func (f *fields) has(m Fields) bool { return f.present&m != 0 && f.null&m == 0 }

// text pairs each text field with its place in f, in the order of the bits.
func (f *fields) text() [9]textField {
	return [9]textField{
		{FieldArgs, &f.args},
		{FieldKwargs, &f.kwargs},
		{FieldRootID, &f.root},
		{FieldParentID, &f.parent},
		{FieldETA, &f.eta},
		{FieldExpires, &f.expires},
		{FieldResult, &f.result},
		{FieldException, &f.exc},
		{FieldTraceback, &f.trace},
	}
}

type textField struct {
	bit   Fields
	value *string
}

// appendEntry encodes the long fields of e, reporting whether any had to be cut.
func appendEntry(b []byte, e *Event) (entry []byte, cut bool) {
	f := fields{
		args: e.Args, kwargs: e.Kwargs, root: e.RootID, parent: e.ParentID, eta: e.ETA, expires: e.Expires,
		result: e.Result, exc: e.Exception, trace: e.Traceback,
	}
	b = binary.AppendUvarint(b, uint64(e.Present))
	b = binary.AppendUvarint(b, uint64(e.Null&e.Present))
	if e.Has(FieldRetries) {
		b = binary.AppendVarint(b, e.Retries)
	}
	if e.Has(FieldRuntime) {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(e.Runtime))
	}
	for _, t := range f.text() {
		if !e.Has(t.bit) {
			continue
		}
		s := *t.value
		if len(s) > maxField {
			s, cut = cutText(s, maxField), true
		}
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b, cut
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

// cutText shortens s to at most n bytes without splitting a character.
func cutText(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// fields returns the fields of a record, and whether its text is whole. Where it is gone, they are those
// that the record itself has.
func (c *Cluster) fields(e *record) (f fields, whole bool) {
	if b := c.text.get(e.text); b != nil || e.text == 0 {
		if b != nil {
			f.decode(b)
		}
		return f, e.flags&cut == 0
	}
	if k := c.routes.key(e.route); e.route != 0 {
		f.know(FieldName, k.name != "")
		f.know(FieldQueue, k.queue != "")
		f.know(FieldExchange, k.exchange != "")
		f.know(FieldRoutingKey, k.routingKey != "")
	}
	if e.kind == TaskSent || e.kind == TaskReceived {
		f.retries = int64(e.n)
		f.know(FieldRetries, true)
	}
	return f, false
}

func (f *fields) know(m Fields, known bool) {
	if known {
		f.present |= m
	}
}

// decode reads an entry.
func (f *fields) decode(b []byte) {
	text := f.text()
	b = f.head(b)
	for _, t := range text {
		if f.has(t.bit) {
			var value []byte
			value, b = cutValue(b)
			*t.value = string(value)
		}
	}
}

// head reads what comes before the text of an entry, and returns the text.
func (f *fields) head(b []byte) []byte {
	present, n := binary.Uvarint(b)
	b = b[n:]
	null, n := binary.Uvarint(b)
	b = b[n:]
	f.present, f.null = Fields(present), Fields(null)
	if f.has(FieldRetries) {
		f.retries, n = binary.Varint(b)
		b = b[n:]
	}
	if f.has(FieldRuntime) {
		f.runtime = math.Float64frombits(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	return b
}

// cutValue splits the first value off the text of an entry.
func cutValue(b []byte) (value, rest []byte) {
	size, n := binary.Uvarint(b)
	return b[n : n+int(size)], b[n+int(size):]
}

// entryContains reports whether any text of an entry contains lower, without regard to case.
func entryContains(b []byte, lower string) bool {
	var f fields
	text := f.text()
	b = f.head(b)
	for _, t := range text {
		if f.has(t.bit) {
			var value []byte
			value, b = cutValue(b)
			if containsFold(value, lower) {
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
