package state

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/umbelhq/umbel/internal/truncate"
)

// ErrSaved is returned for bytes that are no saved events of a known form.
var ErrSaved = errors.New("not saved events")

// Saved events begin with the number of their form. It rises whenever that changes; older forms stay readable. Form 1
// had no FieldExpired, FieldTerminated and FieldSignum; forms up to 3 had no FieldClockOffset.
const (
	savedForm     = 4
	concludedForm = 5 // a Conclusion comes first: its reason and evidence, texts that no table holds, and its time, a varint
)

func readable(form byte) bool { return form >= 1 && form <= concludedForm }

// hasConclusion reports whether a form begins with a Conclusion.
func hasConclusion(form byte) bool { return form == concludedForm || form == 3 }

// A saved event is: its kind, in the low half of a byte, with codec flags in the high half; the present fields
// worth saving and the null ones among them (uvarints); raw clock and repaired clock (uvarints); micros (varint),
// as the distance from the event before; receivedMicros, if flagged, as the distance from micros (varint); pid
// (varint); hostname; subject, if the kind has one; then every field that is present and not null, in the
// order of the bits; then, of a worker's event, the number of unknown fields and their keys and values. Integers
// are varints, floats 8 bytes little endian, truths a byte. A text is a uvarint, twice its length, and its bytes; or
// twice its number in the table of texts, plus one. The table holds the task id, then every text of at least
// minShared bytes as it comes, maxShared in all.
const (
	codecRetimed  = 0x10
	codecCut      = 0x20
	codecInt      = 0x40 // freq was an integer; of a task's event: the sender's clock was off
	codecReceived = 0x80

	minShared = 4
	maxShared = 32
)

// inSaved are the fields worth saving: of others, only the presence is known.
const inSaved = inEntry | FieldFreq | FieldActive | FieldProcessed | FieldLoad | FieldSoftware | FieldVersion | FieldSystem |
	FieldExpired | FieldTerminated | FieldSignum | FieldClockOffset

// codec is what the saved events of one task have in common.
type codec struct {
	texts  [maxShared]string // an array, so that a codec needs no heap
	shared int
	micros int64
}

// begin forgets the events before.
func (c *codec) begin(id string) {
	c.texts[0], c.shared, c.micros = id, 1, 0
}

// text returns the place of a text field, nil for numbers.
func (e *Event) text(f Fields) *string {
	switch f {
	case FieldName:
		return &e.Name
	case FieldArgs:
		return &e.Args
	case FieldKwargs:
		return &e.Kwargs
	case FieldRootID:
		return &e.RootID
	case FieldParentID:
		return &e.ParentID
	case FieldETA:
		return &e.ETA
	case FieldExpires:
		return &e.Expires
	case FieldQueue:
		return &e.Queue
	case FieldExchange:
		return &e.Exchange
	case FieldRoutingKey:
		return &e.RoutingKey
	case FieldResult:
		return &e.Result
	case FieldException:
		return &e.Exception
	case FieldTraceback:
		return &e.Traceback
	case FieldSoftware:
		return &e.Software
	case FieldVersion:
		return &e.Version
	case FieldSystem:
		return &e.System
	default:
		return nil
	}
}

// hasSubject reports whether the subject of an event of that kind adds to the kind.
func hasSubject(k Kind) bool { return k == TaskCustom || k == WorkerOther || k == Other }

// append encodes an event, but for its id. cut records that some of its text is missing.
func (c *codec) append(b []byte, e *Event, repaired int64, cut, received bool) []byte {
	present := e.Present & inSaved
	head := byte(e.Kind)
	for _, f := range [...]struct {
		set bool
		bit byte
	}{{e.Retimed, codecRetimed}, {cut, codecCut}, {e.FreqIsInt || e.Skewed && e.Kind.Task(), codecInt}, {received, codecReceived}} {
		if f.set {
			head |= f.bit
		}
	}
	b = append(b, head)
	b = binary.AppendUvarint(b, uint64(present))
	b = binary.AppendUvarint(b, uint64(e.Null&present))
	b = binary.AppendUvarint(b, uint64(e.Clock))
	b = binary.AppendUvarint(b, uint64(repaired))
	b = binary.AppendVarint(b, e.Micros-c.micros)
	c.micros = e.Micros
	if received {
		b = binary.AppendVarint(b, e.ReceivedMicros-e.Micros)
	}
	b = binary.AppendVarint(b, e.PID)
	b = c.appendText(b, e.Hostname)
	if hasSubject(e.Kind) {
		b = c.appendText(b, e.Subject)
	}
	for left := present &^ e.Null; left != 0; left &= left - 1 {
		f := left & -left
		if text := e.text(f); text != nil {
			b = c.appendText(b, *text)
		} else {
			b = appendNumber(b, e, f)
		}
	}
	if e.Kind.Worker() {
		b = binary.AppendUvarint(b, uint64(len(e.Extra)))
		for k, v := range e.Extra {
			b = c.appendText(c.appendText(b, k), v)
		}
	}
	return b
}

func appendNumber(b []byte, e *Event, f Fields) []byte {
	switch f {
	case FieldRetries:
		return binary.AppendVarint(b, e.Retries)
	case FieldActive:
		return binary.AppendVarint(b, e.Active)
	case FieldProcessed:
		return binary.AppendVarint(b, e.Processed)
	case FieldRuntime:
		return appendFloat(b, e.Runtime)
	case FieldFreq:
		return appendFloat(b, e.Freq)
	case FieldExpired:
		return appendBool(b, e.Expired)
	case FieldTerminated:
		return appendBool(b, e.Terminated)
	case FieldSignum:
		return binary.AppendVarint(b, e.Signum)
	case FieldClockOffset:
		return binary.AppendVarint(b, e.OffsetMicros)
	default:
		for _, l := range e.Load {
			b = appendFloat(b, l)
		}
		return b
	}
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendFloat(b []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}

// appendText encodes a text, by its number if the table has it.
func (c *codec) appendText(b []byte, s string) []byte {
	s = truncate.Bytes(s, maxField)
	if len(s) >= minShared {
		if i := slices.Index(c.texts[:c.shared], s); i >= 0 {
			return binary.AppendUvarint(b, uint64(i)<<1|1)
		}
		c.share(s)
	}
	b = binary.AppendUvarint(b, uint64(len(s))<<1)
	return append(b, s...)
}

func (c *codec) share(s string) {
	if len(s) >= minShared && c.shared < maxShared {
		c.texts[c.shared] = s
		c.shared++
	}
}

// appendText encodes a text as its length and its bytes.
func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// savedReader reads saved events.
type savedReader struct {
	codec
	byteReader[string]
}

// next reads one event into s, whose texts share memory with the input.
func (r *savedReader) next(s *SavedEvent) {
	head := r.byte()
	*s = SavedEvent{Cut: head&codecCut != 0}
	e := &s.Event
	e.Kind, e.Retimed = Kind(head&0x0f), head&codecRetimed != 0
	if e.Kind.Task() {
		e.Skewed = head&codecInt != 0
	} else {
		e.FreqIsInt = head&codecInt != 0
	}
	if !e.Kind.Task() && !e.Kind.Worker() {
		r.bad = true
	}
	e.Present = Fields(r.uvarint()) & inSaved
	e.Null = Fields(r.uvarint()) & e.Present
	e.Clock, s.Repaired = int64(r.uvarint()), int64(r.uvarint())
	e.Micros = r.micros + r.varint()
	r.micros = e.Micros
	if head&codecReceived != 0 {
		e.ReceivedMicros = e.Micros + r.varint()
	}
	e.PID = r.varint()
	e.Hostname = r.sharedText()
	if hasSubject(e.Kind) {
		e.Subject = r.sharedText()
	}
	for left := e.Present &^ e.Null; left != 0; left &= left - 1 {
		f := left & -left
		if text := e.text(f); text != nil {
			*text = r.sharedText()
		} else {
			r.number(e, f)
		}
	}
	if e.Kind.Worker() {
		for n := r.uvarint(); n > 0 && !r.bad; n-- {
			if e.Extra == nil {
				e.Extra = make(map[string]string)
			}
			k := r.sharedText()
			e.Extra[k] = r.sharedText()
		}
	}
}

// sharedText reads a text that may be a number in the table of texts.
func (r *savedReader) sharedText() string {
	u := r.uvarint()
	n := u >> 1
	if u&1 == 1 {
		if n >= uint64(r.shared) {
			r.fail()
			return ""
		}
		return r.texts[n]
	}
	s := r.take(n)
	r.share(s)
	return s
}

// byteReader reads encoded values. After a value that is malformed or cut short, bad is set and every further value is
// zero. It is generic so that saved events can share memory with a string and the text log is read without a copy.
type byteReader[T string | []byte] struct {
	rest T
	bad  bool
}

// number reads the value of a field that is no text.
func (r *byteReader[T]) number(e *Event, f Fields) {
	switch f {
	case FieldRetries:
		e.Retries = r.varint()
	case FieldActive:
		e.Active = r.varint()
	case FieldProcessed:
		e.Processed = r.varint()
	case FieldRuntime:
		e.Runtime = r.float()
	case FieldFreq:
		e.Freq = r.float()
	case FieldExpired:
		e.Expired = r.byte() != 0
	case FieldTerminated:
		e.Terminated = r.byte() != 0
	case FieldSignum:
		e.Signum = r.varint()
	case FieldClockOffset:
		e.OffsetMicros = r.varint()
	default:
		for i := range e.Load {
			e.Load[i] = r.float()
		}
	}
}

func (r *byteReader[T]) fail() {
	r.rest, r.bad = r.rest[:0], true
}

func (r *byteReader[T]) byte() byte {
	if len(r.rest) == 0 {
		r.fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *byteReader[T]) uvarint() uint64 {
	var v uint64
	for i := 0; i < len(r.rest) && i < binary.MaxVarintLen64; i++ {
		b := r.rest[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			r.rest = r.rest[i+1:]
			return v
		}
	}
	r.fail()
	return 0
}

func (r *byteReader[T]) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *byteReader[T]) float() float64 {
	if len(r.rest) < 8 {
		r.fail()
		return 0
	}
	var u uint64
	for i := range 8 {
		u |= uint64(r.rest[i]) << (8 * i)
	}
	r.rest = r.rest[8:]
	return math.Float64frombits(u)
}

// text reads what appendText wrote.
func (r *byteReader[T]) text() T { return r.take(r.uvarint()) }

// take returns the next n bytes.
func (r *byteReader[T]) take(n uint64) T {
	if n > uint64(len(r.rest)) {
		r.fail()
		return r.rest
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}
