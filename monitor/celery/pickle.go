package celery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrPythonObject is returned for a pickle that contains objects, which only Python can make.
var ErrPythonObject = errors.New("opaque Python object")

// Bounds of Unpickle. A pickle may name a part of itself many times, so it can be far larger than its bytes.
const (
	maxPickle      = 8 << 20 // bytes read
	maxUnpickled   = 8 << 20 // bytes of JSON written
	maxPickleDepth = 200
	maxPickleStack = 1 << 20
)

// Unpickle reads a pickle of plain data, of protocol 0 to 5, as JSON: None, booleans, numbers, text, bytes (as
// base64), lists, tuples, sets and dicts (other keys become text). NaN and the infinities become the text that
// Python prints. It executes nothing: a pickle that needs a class is ErrPythonObject.
func Unpickle(b []byte) (json.RawMessage, error) { return unpickle(b, false) }

func unpickle(b []byte, describe bool) (json.RawMessage, error) {
	if len(b) > maxPickle {
		return nil, fmt.Errorf("pickle of %d bytes is too long to read", len(b))
	}
	u := unpickler{in: b, memo: make(map[int]any), describe: describe}
	v, err := u.load()
	if err != nil {
		return nil, err
	}
	w := pickleWriter{}
	if err := w.value(v, 0); err != nil {
		return nil, err
	}
	return w.out.Bytes(), nil
}

var errPickle = errors.New("no pickle, or a damaged one")

// Values on the stack are nil, bool, *big.Int, int64, float64, string, []byte, *pickleList, *pickleDict, or mark, and where
// objects are described pickleClass and *pickleObject.
type (
	pickleList struct{ items []any } // a list, a tuple or a set
	pickleDict struct{ keys, values []any }
	pickleMark struct{}
)

// unpickler executes the opcodes of a pickle on a stack.
type unpickler struct {
	in       []byte
	stack    []any
	memo     map[int]any
	describe bool // objects are described
}

func (u *unpickler) load() (any, error) {
	for {
		if len(u.in) == 0 || len(u.stack) > maxPickleStack {
			return nil, errPickle
		}
		op := u.in[0]
		u.in = u.in[1:]
		if op == '.' {
			v, err := u.pop()
			if _, mark := v.(pickleMark); mark || err != nil {
				return nil, errPickle
			}
			return v, nil
		}
		step := [...]func(op byte) (bool, error){u.scalar, u.text, u.collect, u.remember, u.objects}
		known := false
		for _, f := range step {
			ok, err := f(op)
			if err != nil {
				return nil, err
			}
			if known = ok; ok {
				break
			}
		}
		if !known {
			return nil, opcodeError(op)
		}
	}
}

// opcodeError distinguishes opcodes that make objects from invalid ones.
func opcodeError(op byte) error {
	if bytes.IndexByte([]byte("cRbioPQ\x81\x82\x83\x84\x92\x93\x97\x98"), op) >= 0 {
		return ErrPythonObject
	}
	return errPickle
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

func (u *unpickler) pop() (any, error) {
	items, err := u.top(1)
	if err != nil {
		return nil, err
	}
	return items[0], nil
}

// top takes n values off the stack, none of them a mark.
func (u *unpickler) top(n int) ([]any, error) {
	if len(u.stack) < n {
		return nil, errPickle
	}
	items := u.stack[len(u.stack)-n:]
	for _, v := range items {
		if _, mark := v.(pickleMark); mark {
			return nil, errPickle
		}
	}
	u.stack = u.stack[:len(u.stack)-n]
	return items, nil
}

// sinceMark takes the values above the last mark off the stack, and the mark.
func (u *unpickler) sinceMark() ([]any, error) {
	for i, v := range slices.Backward(u.stack) {
		if _, mark := v.(pickleMark); mark {
			items := append([]any(nil), u.stack[i+1:]...)
			u.stack = u.stack[:i]
			return items, nil
		}
	}
	return nil, errPickle
}

func (u *unpickler) take(n int) ([]byte, error) {
	if n < 0 || n > len(u.in) {
		return nil, errPickle
	}
	b := u.in[:n]
	u.in = u.in[n:]
	return b, nil
}

// counted takes bytes whose number is before them, in size bytes.
func (u *unpickler) counted(size int) ([]byte, error) {
	b, err := u.take(size)
	if err != nil {
		return nil, err
	}
	n := little(b)
	if n > maxPickle {
		return nil, errPickle
	}
	return u.take(int(n))
}

func (u *unpickler) line() (string, error) {
	i := bytes.IndexByte(u.in, '\n')
	if i < 0 {
		return "", errPickle
	}
	line := string(bytes.TrimSuffix(u.in[:i], []byte("\r")))
	u.in = u.in[i+1:]
	return line, nil
}
