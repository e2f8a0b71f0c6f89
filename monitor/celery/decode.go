// Package celery implements the wire formats of Celery: event messages, task messages, remote control, envelopes
// of Kombu, JSON as Python writes it, MessagePack, YAML, and pickles, which are read without executing them. It does no
// I/O.
package celery

import (
	"encoding/binary"
	"maps"
	"unicode/utf8"
	"unsafe"

	"github.com/umbelhq/umbel/state"
)

// Causes of rejection that a Decoder counts. The first six reject an event or the rest of a message, the others only a
// field.
const (
	CausePickle      = "pickle"       // event_serializer is pickle, which is not decoded
	CauseContentType = "content_type" // a serializer other than JSON, MessagePack, YAML and pickle
	CauseMalformed   = "malformed"    // not what the content type says, from here to the end of the message
	CauseNotEvent    = "not_an_event" // JSON, but not an object, or one without a usable type
	CauseHostname    = "hostname"     // a task or worker event without a sender
	CauseUUID        = "uuid"         // a task event without an id, or with one of over 512 bytes
	CauseTimestamp   = "timestamp"    // missing or outside 2000 to 2100: replaced by the time of receipt
	CauseClock       = "clock"        // not an integer from 1 to 2^62: ignored
	CauseField       = "field"        // a known field of another type than Celery's: ignored
)

// Timestamps from 2000 up to 2100 are accepted, µs.
const (
	minMicros = 946684800_000000
	maxMicros = 4102444800_000000
	maxID     = 512
	maxExtras = 16
)

// Decoder decodes event messages. The zero value is ready. It is not safe for concurrent use.
type Decoder struct {
	rejected map[string]uint64
	event    state.Event
	extras   []extra
}

type extra struct{ key, raw string }

// Rejected returns how often each cause occurred.
func (d *Decoder) Rejected() map[string]uint64 { return maps.Clone(d.rejected) }

// reject counts a cause.
func (d *Decoder) reject(cause string) {
	if d.rejected == nil {
		d.rejected = make(map[string]uint64)
	}
	d.rejected[cause]++
}

// JSON returns a message body of a MIME type as Decode reads it, false if its serializer is not JSON, MessagePack or YAML,
// or if it is malformed, which is counted. A missing type is taken for JSON.
func (d *Decoder) JSON(contentType string, body []byte) ([]byte, bool) {
	serializer, ok := SerializerOf(contentType)
	if !ok {
		if mimeType(contentType) == mimePickle {
			d.reject(CausePickle)
		} else {
			d.reject(CauseContentType)
		}
		return nil, false
	}
	text, err := serializer.toJSON(body, readable)
	if err != nil {
		d.reject(CauseMalformed)
		return nil, false
	}
	return text, true
}

// Decode calls yield with each event of a message body: one JSON object, or an array of them. received is the
// local time, µs. The event is valid only during the call; a copy stays valid, and shares memory with the body, which must not be
// changed any more. An element that cannot be used is counted and does not affect the others; after malformed JSON the rest of
// the message is lost. Decode returns how many elements or messages were rejected, and the cause of the last one.
func (d *Decoder) Decode(body []byte, received int64, yield func(*state.Event)) (lost int, cause string) {
	m := message{d: d, scanner: scanner{text: valid(body)}, received: received}
	if m.next() != '[' {
		if !m.element(yield) || !m.end() {
			m.lose(CauseMalformed)
		}
		return m.lost, m.cause
	}
	m.at++
	if m.accept(']') && m.end() {
		return 0, "" // workers up to 5.6 flush empty batches
	}
	for m.element(yield) {
		if m.accept(']') {
			if m.end() {
				return m.lost, m.cause
			}
			break
		}
		if !m.accept(',') {
			break
		}
	}
	m.lose(CauseMalformed)
	return m.lost, m.cause
}

// message is one body being decoded.
type message struct {
	scanner

	d        *Decoder
	received int64
	lost     int
	cause    string
}

// lose counts an element or a rest that cannot be used.
func (m *message) lose(cause string) {
	m.lost++
	m.cause = cause
	m.d.reject(cause)
}

// valid returns the body as a string in which each byte that is not UTF-8 is U+FFFD. It does not copy a body that has none.
func valid(body []byte) string {
	if !isASCII(body) && !utf8.Valid(body) {
		return string([]rune(string(body)))
	}
	return unsafe.String(unsafe.SliceData(body), len(body)) //nolint:gosec // nobody changes the body any more
}

// isASCII reports whether a body is ASCII, as those that Python writes are. It looks at more bytes at a time than utf8.Valid.
func isASCII(body []byte) bool {
	for ; len(body) >= 32; body = body[32:] {
		all := binary.LittleEndian.Uint64(body) | binary.LittleEndian.Uint64(body[8:]) |
			binary.LittleEndian.Uint64(body[16:]) | binary.LittleEndian.Uint64(body[24:])
		if all&eachHigh != 0 {
			return false
		}
	}
	for _, b := range body {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// element decodes one value and yields it if it is an event. It returns false if the JSON is malformed.
func (m *message) element(yield func(*state.Event)) bool {
	d, s := m.d, &m.scanner
	if s.next() != '{' {
		if _, err := s.raw(); err != nil {
			return false
		}
		m.lose(CauseNotEvent)
		return true
	}
	e := &d.event
	*e = state.Event{}
	e.ReceivedMicros = m.received
	d.extras = d.extras[:0]
	s.at++
	for more := !s.accept('}'); more; {
		key, err := s.str()
		if err != nil || s.next() != ':' {
			return false
		}
		s.pass()
		if !d.field(s, e, key) {
			return false
		}
		switch s.next() {
		case ',':
		case '}':
			more = false
		default:
			return false
		}
		s.pass()
	}
	if cause := d.check(e); cause != "" {
		m.lose(cause)
		return true
	}
	yield(e)
	return true
}

// check completes an event, or says why it is not one.
func (d *Decoder) check(e *state.Event) (cause string) {
	switch {
	case e.Kind == 0:
		return CauseNotEvent
	case e.Kind == state.Other:
		return ""
	case e.Hostname == "":
		return CauseHostname
	case e.Kind.Task() && (e.ID == "" || len(e.ID) > maxID):
		return CauseUUID
	}
	if e.Present&state.FieldClock != 0 && e.Clock == 0 && e.Kind != state.TaskSent {
		d.reject(CauseClock)
	}
	if e.Micros < minMicros || e.Micros >= maxMicros {
		d.reject(CauseTimestamp)
		e.Micros, e.Retimed = e.ReceivedMicros, true
	}
	if e.Kind.Worker() && len(d.extras) > 0 {
		e.Extra = make(map[string]string, len(d.extras))
		for _, x := range d.extras {
			e.Extra[x.key] = x.raw
		}
	}
	return ""
}

// field reads the value of one key into the event. It returns false if the JSON is malformed.
func (d *Decoder) field(s *scanner, e *state.Event, key string) bool {
	var v member
	if !s.member(&v) {
		return false
	}
	bit, known := v.setField(e, key)
	switch {
	case !known:
		if len(d.extras) < maxExtras {
			d.extras = append(d.extras, extra{key, v.raw})
		}
		return true
	case v.mistyped:
		d.reject(CauseField)
	}
	e.Present |= bit
	e.Null &^= bit
	if v.mistyped || v.isNull {
		e.Null |= bit
	}
	return true
}
