package celery

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"
)

var errMsgpack = errors.New("malformed MessagePack")

// fromMsgpack returns a MessagePack value as JSON in the manner of Python: bare NaN and infinities are possible. Bytes become
// base64, extension types null; if f is lossless, bytes become what Kombu writes for them in JSON, and extension types and
// keys that are not text are errors. The result is at most six times as long as b, and is nested at most maxNesting deep.
// The error is errMsgpack or errDepth. The format is https://github.com/msgpack/msgpack/blob/master/spec.md.
func fromMsgpack(b []byte, f fidelity) ([]byte, error) {
	t := transcoder{fidelity: f, in: b, out: make([]byte, 0, len(b)+len(b)/4)}
	t.value(0)
	if len(t.in) > 0 {
		t.fail(errMsgpack)
	}
	if t.err != nil {
		return nil, t.err
	}
	return t.out, nil
}

// transcoder writes the JSON of what it reads. After an error it reads nothing more.
type transcoder struct {
	fidelity fidelity
	in, out  []byte
	err      error
}

// fail sets the error, the first of which counts.
func (t *transcoder) fail(err error) {
	if t.err == nil {
		t.in, t.err = nil, err
	}
}

// take returns the next n bytes, nil if there are fewer.
func (t *transcoder) take(n uint64) []byte {
	if n > uint64(len(t.in)) {
		t.fail(errMsgpack)
		return nil
	}
	b := t.in[:n]
	t.in = t.in[n:]
	return b
}

// unsigned reads an integer of so many bytes, at most 8.
func (t *transcoder) unsigned(size uint64) uint64 {
	var all [8]byte
	copy(all[8-size:], t.take(size))
	return binary.BigEndian.Uint64(all[:])
}

// value reads one value.
func (t *transcoder) value(depth int) {
	head := t.take(1)
	if t.err != nil {
		return
	}
	switch c := head[0]; {
	case c <= 0x7f, c >= 0xe0: // fixint
		t.out = strconv.AppendInt(t.out, int64(int8(c)), 10)
	case c <= 0x8f:
		t.object(uint64(c&0x0f), depth)
	case c <= 0x9f:
		t.array(uint64(c&0x0f), depth)
	case c <= 0xbf:
		t.text(uint64(c & 0x1f))
	case c == 0xc0:
		t.out = append(t.out, "null"...)
	case c == 0xc1:
		t.fail(errMsgpack)
	case c <= 0xc3:
		t.out = strconv.AppendBool(t.out, c == 0xc3)
	case c <= 0xc6: // bin 8, 16, 32
		t.bytes(t.unsigned(1 << (c - 0xc4)))
	case c <= 0xc9: // ext 8, 16, 32: a type, then bytes
		t.extension(t.unsigned(1<<(c-0xc7)) + 1)
	case c <= 0xcb:
		t.float(4 << (c - 0xca))
	case c <= 0xcf:
		t.out = strconv.AppendUint(t.out, t.unsigned(1<<(c-0xcc)), 10)
	case c <= 0xd3:
		size := uint64(1) << (c - 0xd0)
		shift := 64 - 8*size
		t.out = strconv.AppendInt(t.out, int64(t.unsigned(size)<<shift)>>shift, 10)
	case c <= 0xd8: // fixext 1 to 16
		t.extension(1<<(c-0xd4) + 1)
	case c <= 0xdb:
		t.text(t.unsigned(1 << (c - 0xd9)))
	case c <= 0xdd:
		t.array(t.unsigned(2<<(c-0xdc)), depth)
	default:
		t.object(t.unsigned(2<<(c-0xde)), depth)
	}
}

func (t *transcoder) float(size uint64) {
	n := t.unsigned(size)
	f := math.Float64frombits(n)
	if size == 4 {
		f = float64(math.Float32frombits(uint32(n)))
	}
	t.out = appendFloat(t.out, f)
}

// appendFloat appends a float as Python writes it in JSON.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 0):
		return append(dst, strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+")+"inity"...)
	}
	from := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, 64)
	if !strings.ContainsAny(string(dst[from:]), ".e") { // 5.0 differs from 5, in Python and as freq
		dst = append(dst, ".0"...)
	}
	return dst
}

func (t *transcoder) text(n uint64) { t.out = appendString(t.out, string(t.take(n))) }

func (t *transcoder) bytes(n uint64) {
	t.out = appendBytes(t.out, t.fidelity, t.take(n))
}

func (t *transcoder) extension(n uint64) {
	t.take(n)
	if t.fidelity == lossless {
		t.fail(errors.New("an extension type of MessagePack has no counterpart in JSON"))
	}
	t.out = append(t.out, "null"...)
}

func (t *transcoder) array(n uint64, depth int) {
	if depth == maxNesting {
		t.fail(errDepth)
	}
	t.out = append(t.out, '[')
	for i := uint64(0); i < n && t.err == nil; i++ {
		if i > 0 {
			t.out = append(t.out, ',')
		}
		t.value(depth + 1)
	}
	t.out = append(t.out, ']')
}

// nests reports whether the next value is a map or an array.
func (t *transcoder) nests() bool {
	return len(t.in) > 0 && (t.in[0] >= 0x80 && t.in[0] <= 0x9f || t.in[0] >= 0xdc && t.in[0] <= 0xdf)
}

// object reads a map. Keys that are not text become the text of their JSON; maps and arrays are no keys in Python, and
// would double what they hold with every level.
func (t *transcoder) object(n uint64, depth int) {
	if depth == maxNesting {
		t.fail(errDepth)
	}
	t.out = append(t.out, '{')
	for i := uint64(0); i < n && t.err == nil; i++ {
		if i > 0 {
			t.out = append(t.out, ',')
		}
		if t.nests() {
			t.fail(errMsgpack)
		}
		from := len(t.out)
		t.value(depth + 1)
		if key := string(t.out[from:]); !strings.HasPrefix(key, `"`) {
			if t.fidelity == lossless {
				t.fail(errKey)
			}
			t.out = appendString(t.out[:from], key)
		}
		t.out = append(t.out, ':')
		t.value(depth + 1)
	}
	t.out = append(t.out, '}')
}
