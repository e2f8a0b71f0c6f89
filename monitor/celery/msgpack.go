package celery

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// mimeMsgpack is the content type of bodies written with event_serializer = "msgpack".
const mimeMsgpack = "application/x-msgpack"

var errMsgpack = errors.New("malformed MessagePack")

// fromMsgpack returns a MessagePack value as JSON in the manner of Python: bare NaN and infinities are possible. Bytes become
// base64, extension types null. The result is at most six times as long as b, and is nested at most maxNesting deep.
// The error is errMsgpack or errDepth. The format is https://github.com/msgpack/msgpack/blob/master/spec.md.
func fromMsgpack(b []byte) ([]byte, error) {
	t := transcoder{in: b, out: make([]byte, 0, len(b)+len(b)/4)}
	if err := t.value(0); err != nil {
		return nil, err
	}
	if len(t.in) > 0 {
		return nil, errMsgpack
	}
	return t.out, nil
}

// transcoder writes the JSON of what it reads.
type transcoder struct{ in, out []byte }

// take returns the next n bytes.
func (t *transcoder) take(n uint64) ([]byte, error) {
	if n > uint64(len(t.in)) {
		return nil, errMsgpack
	}
	b := t.in[:n]
	t.in = t.in[n:]
	return b, nil
}

// unsigned reads an integer of so many bytes, at most 8.
func (t *transcoder) unsigned(size uint64) (uint64, error) {
	b, err := t.take(size)
	if err != nil {
		return 0, err
	}
	var all [8]byte
	copy(all[8-size:], b)
	return binary.BigEndian.Uint64(all[:]), nil
}

// value reads one value.
func (t *transcoder) value(depth int) error {
	head, err := t.take(1)
	if err != nil {
		return err
	}
	switch c := head[0]; {
	case c <= 0x7f, c >= 0xe0: // fixint
		t.out = strconv.AppendInt(t.out, int64(int8(c)), 10)
		return nil
	case c <= 0x8f:
		return t.object(uint64(c&0x0f), depth)
	case c <= 0x9f:
		return t.array(uint64(c&0x0f), depth)
	case c <= 0xbf:
		return t.text(uint64(c & 0x1f))
	case c <= 0xc3:
		return t.word(c)
	case c <= 0xc6: // bin 8, 16, 32
		return t.sized(1<<(c-0xc4), t.bytes)
	case c <= 0xc9: // ext 8, 16, 32: a type, then bytes
		return t.sized(1<<(c-0xc7), func(n uint64) error { return t.extension(n + 1) })
	case c <= 0xcb:
		return t.float(4 << (c - 0xca))
	case c <= 0xcf:
		n, err := t.unsigned(1 << (c - 0xcc))
		t.out = strconv.AppendUint(t.out, n, 10)
		return err
	case c <= 0xd3:
		size := uint64(1) << (c - 0xd0)
		n, err := t.unsigned(size)
		shift := 64 - 8*size
		t.out = strconv.AppendInt(t.out, int64(n<<shift)>>shift, 10)
		return err
	case c <= 0xd8: // fixext 1 to 16
		return t.extension(1<<(c-0xd4) + 1)
	case c <= 0xdb:
		return t.sized(1<<(c-0xd9), t.text)
	case c <= 0xdd:
		return t.sized(2<<(c-0xdc), func(n uint64) error { return t.array(n, depth) })
	default:
		return t.sized(2<<(c-0xde), func(n uint64) error { return t.object(n, depth) })
	}
}

// sized reads a length of so many bytes, and what follows.
func (t *transcoder) sized(size uint64, read func(n uint64) error) error {
	n, err := t.unsigned(size)
	if err != nil {
		return err
	}
	return read(n)
}

func (t *transcoder) word(c byte) error {
	switch c {
	case 0xc0:
		t.out = append(t.out, "null"...)
	case 0xc2:
		t.out = append(t.out, "false"...)
	case 0xc3:
		t.out = append(t.out, "true"...)
	default:
		return errMsgpack
	}
	return nil
}

func (t *transcoder) float(size uint64) error {
	n, err := t.unsigned(size)
	f := math.Float64frombits(n)
	if size == 4 {
		f = float64(math.Float32frombits(uint32(n)))
	}
	switch {
	case math.IsNaN(f):
		t.out = append(t.out, "NaN"...)
	case math.IsInf(f, 0):
		t.out = append(t.out, strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+")+"inity"...)
	default:
		from := len(t.out)
		t.out = strconv.AppendFloat(t.out, f, 'g', -1, 64)
		if !strings.ContainsAny(string(t.out[from:]), ".e") { // Python tells 5.0 from 5, and so does freq
			t.out = append(t.out, ".0"...)
		}
	}
	return err
}

func (t *transcoder) text(n uint64) error {
	b, err := t.take(n)
	t.quote(b)
	return err
}

// quote writes a JSON string. Bytes that are not UTF-8 become U+FFFD.
func (t *transcoder) quote(b []byte) {
	t.out = append(t.out, '"')
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == '"' || r == '\\':
			t.out = append(t.out, '\\', b[0])
		case r < ' ':
			t.out = append(t.out, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		default:
			t.out = utf8.AppendRune(t.out, r)
		}
		b = b[n:]
	}
	t.out = append(t.out, '"')
}

func (t *transcoder) bytes(n uint64) error {
	b, err := t.take(n)
	t.out = append(t.out, '"')
	t.out = base64.StdEncoding.AppendEncode(t.out, b)
	t.out = append(t.out, '"')
	return err
}

func (t *transcoder) extension(n uint64) error {
	_, err := t.take(n)
	t.out = append(t.out, "null"...)
	return err
}

func (t *transcoder) array(n uint64, depth int) error {
	if depth == maxNesting {
		return errDepth
	}
	t.out = append(t.out, '[')
	for i := range n {
		if i > 0 {
			t.out = append(t.out, ',')
		}
		if err := t.value(depth + 1); err != nil {
			return err
		}
	}
	t.out = append(t.out, ']')
	return nil
}

// nests reports whether the next value is a map or an array.
func (t *transcoder) nests() bool {
	return len(t.in) > 0 && (t.in[0] >= 0x80 && t.in[0] <= 0x9f || t.in[0] >= 0xdc && t.in[0] <= 0xdf)
}

// object reads a map. Keys that are no text become the text of their JSON; maps and arrays are no keys in Python, and would
// double what they hold with every level.
func (t *transcoder) object(n uint64, depth int) error {
	if depth == maxNesting {
		return errDepth
	}
	t.out = append(t.out, '{')
	for i := range n {
		if i > 0 {
			t.out = append(t.out, ',')
		}
		if t.nests() {
			return errMsgpack
		}
		from := len(t.out)
		if err := t.value(depth + 1); err != nil {
			return err
		}
		if t.out[from] != '"' {
			key := string(t.out[from:])
			t.out = t.out[:from]
			t.quote([]byte(key))
		}
		t.out = append(t.out, ':')
		if err := t.value(depth + 1); err != nil {
			return err
		}
	}
	t.out = append(t.out, '}')
	return nil
}
