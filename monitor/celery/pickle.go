package celery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrPythonObject is returned for a pickle with an object that only Python can make, such as one that is stored
// elsewhere.
var ErrPythonObject = errors.New("opaque Python object")

var errPickle = errors.New("no pickle, or a damaged one")

// Bounds of Unpickle. A pickle may name a part of itself many times, so it can be far larger than its bytes.
const (
	maxPickle      = 8 << 20 // bytes read
	maxUnpickled   = 8 << 20 // bytes of JSON written
	maxPickleDepth = 200
	maxPickleStack = 1 << 20
)

// Unpickle reads a pickle, of protocol 0 to 5, as JSON: None, booleans, numbers, text, bytes (as base64), lists, tuples,
// sets and dicts (keys that are not text become text). NaN and the infinities become the text that Python prints. Nothing
// is executed or imported: objects are described, dates and times, decimals and UUIDs as text, sets and ordered dicts by
// their elements, all else as a JSON object with the key __class__ (module.Name) and, if present, args, state, items and
// pairs. plain is false then: the result is for people and cannot be passed to a task.
func Unpickle(b []byte) (text json.RawMessage, plain bool, err error) {
	if len(b) > maxPickle {
		return nil, false, fmt.Errorf("pickle of %d bytes is too long to read", len(b))
	}
	u := unpickler{in: b, memo: make(map[int]any)}
	v := u.load()
	if u.err != nil {
		return nil, false, u.err
	}
	w := pickleWriter{}
	if err := w.value(v, 0); err != nil {
		return nil, false, err
	}
	return w.out.Bytes(), !u.objects, nil
}

// Values on the stack are nil, bool, *big.Int, int64, float64, string, []byte, *pickleList, *pickleDict, pickleMark,
// pickleClass or *pickleObject.
type (
	pickleList struct{ items []any } // a list, a tuple or a set
	pickleDict struct{ keys, values []any }
	pickleMark struct{}
	// pickleClass is the name of a class or function, pickleObject what one makes of arguments.
	pickleClass  struct{ module, name string }
	pickleObject struct {
		class   pickleClass
		args    []any
		state   any
		items   pickleList
		pairs   pickleDict
		writing bool // it is within itself
	}
)

// unpickler executes the opcodes of a pickle on a stack, up to the first error.
type unpickler struct {
	in      []byte
	stack   []any
	memo    map[int]any
	objects bool // there was an opcode of objects
	err     error
}

// fail sets the error, the first of which counts.
func (u *unpickler) fail(err error) {
	if u.err == nil {
		u.in, u.err = nil, err
	}
}

// load executes all opcodes and returns the value that is left.
func (u *unpickler) load() any {
	for {
		op := byte(u.unsigned(1))
		if len(u.stack) > maxPickleStack {
			u.fail(errPickle)
		}
		switch {
		case u.err != nil:
			return nil
		case op == '.': // STOP
			return u.pop()
		case u.scalar(op), u.text(op), u.collect(op), u.remember(op):
		case u.object(op):
			u.objects = true
		case bytes.IndexByte([]byte("PQ\x82\x83\x84\x97\x98"), op) >= 0: // persistent ids, extensions, buffers
			u.fail(ErrPythonObject)
		default:
			u.fail(errPickle)
		}
	}
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

// pop takes a value off the stack.
func (u *unpickler) pop() any { return u.top(1)[0] }

// top takes n values off the stack, none of them a mark. They stay valid until the next push.
func (u *unpickler) top(n int) []any {
	items := u.stack[max(len(u.stack)-n, 0):]
	if len(items) < n || slices.Contains(items, any(pickleMark{})) {
		u.fail(errPickle)
		return make([]any, n)
	}
	u.stack = u.stack[:len(u.stack)-n]
	return items
}

// last returns the value on top of the stack and leaves it there.
func (u *unpickler) last() any {
	if len(u.stack) == 0 {
		u.fail(errPickle)
		return nil
	}
	return u.stack[len(u.stack)-1]
}

// sinceMark takes the values above the last mark off the stack, and the mark.
func (u *unpickler) sinceMark() []any {
	for i, v := range slices.Backward(u.stack) {
		if _, mark := v.(pickleMark); mark {
			items := slices.Clone(u.stack[i+1:])
			u.stack = u.stack[:i]
			return items
		}
	}
	u.fail(errPickle)
	return nil
}

// take returns the next n bytes, nil if there are fewer.
func (u *unpickler) take(n uint64) []byte {
	if n > uint64(len(u.in)) {
		u.fail(errPickle)
		return nil
	}
	b := u.in[:n]
	u.in = u.in[n:]
	return b
}

// unsigned reads a number of up to eight bytes, least significant first.
func (u *unpickler) unsigned(size int) (n uint64) {
	for i, c := range u.take(uint64(size)) {
		n |= uint64(c) << (8 * i)
	}
	return n
}

// counted takes bytes whose number is before them, in size bytes.
func (u *unpickler) counted(size int) []byte { return u.take(u.unsigned(size)) }

// line takes the rest of a line.
func (u *unpickler) line() string {
	line, rest, ok := bytes.Cut(u.in, []byte("\n"))
	if !ok {
		u.fail(errPickle)
		return ""
	}
	u.in = rest
	return string(bytes.TrimSuffix(line, []byte("\r")))
}
