package idempotency

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// String returns v as canonical JSON.
func (v Value) String() string { return string(v.AppendTo(nil)) }

// AppendTo appends v to b as canonical JSON: what Python's json.dumps writes with sort_keys=True and
// separators=(",", ":"). It is ASCII.
func (v Value) AppendTo(b []byte) []byte {
	w := writer{b: b}
	w.value(&v)
	return w.b
}

// digest returns the SHA-256 of canonical JSON.
func (v Value) digest() []byte {
	w := writer{sum: sha256.New()}
	w.value(&v)
	w.sum.Write(w.b)
	return w.sum.Sum(nil)
}

// writer writes canonical JSON to b, or through b into a digest.
type writer struct {
	b   []byte
	sum hash.Hash // nil if all is to be in b
}

// flushAt is the length of b, in bytes, from which on it is written into a digest.
const flushAt = 8 << 10

// flush makes room in b, as the JSON can be 6 times as long as what was read.
func (w *writer) flush() {
	if w.sum != nil && len(w.b) > flushAt {
		w.sum.Write(w.b)
		w.b = w.b[:0]
	}
}

func (w *writer) value(v *Value) {
	switch v.kind {
	case isNull:
		w.b = append(w.b, "null"...)
	case isFalse:
		w.b = append(w.b, "false"...)
	case isTrue:
		w.b = append(w.b, "true"...)
	case isInt:
		w.b = append(w.b, v.text...)
	case isFloat:
		w.b = appendFloat(w.b, v.number)
	case isText:
		w.text(v.text)
	case isArray:
		w.container(v, '[', ']')
	case isObject:
		w.container(v, '{', '}')
	}
	w.flush()
}

func (w *writer) container(v *Value, begin, end byte) {
	w.b = append(w.b, begin)
	items := elements(v)
	for i := range items {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		if v.kind == isObject {
			w.text(v.keys[i])
			w.b = append(w.b, ':')
		}
		w.value(&items[i])
	}
	w.b = append(w.b, end)
}

// appendFloat writes a float as Python's repr does: the shortest digits that read as the same float, with an exponent
// below 1e-4 and from 1e16 on.
func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "NaN"...)
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if bytes.IndexByte(b[start:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

const hexDigits = "0123456789abcdef"

// text writes a string as Python does with ensure_ascii.
func (w *writer) text(s string) {
	w.b = append(w.b, '"')
	for s != "" {
		n := 0
		for n < len(s) && plain(s[n]) {
			n++
		}
		w.b, s = append(w.b, s[:n]...), s[n:]
		for s != "" && !plain(s[0]) {
			r, size := decode(s)
			w.b, s = appendEscape(w.b, r), s[size:]
			if len(w.b) > flushAt {
				w.flush()
			}
		}
	}
	w.b = append(w.b, '"')
}

func appendEscape(b []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, `\n`...)
	case '\r':
		return append(b, `\r`...)
	case '\t':
		return append(b, `\t`...)
	case '\f':
		return append(b, `\f`...)
	case '\b':
		return append(b, `\b`...)
	}
	if r > 0xffff {
		var high rune
		high, r = utf16.EncodeRune(r)
		b = appendUnit(b, high)
	}
	return appendUnit(b, r)
}

func appendUnit(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

func plain(c byte) bool { return c >= ' ' && c <= '~' && c != '"' && c != '\\' }

// decode reads the first code point of s, which may be a surrogate. It is (utf8.RuneError, 1) where there is none.
func decode(s string) (rune, int) {
	if len(s) >= 2 && s[0]&0xe0 == 0xc0 && s[1]&0xc0 == 0x80 && s[0] >= 0xc2 {
		return rune(s[0]&0x1f)<<6 | rune(s[1]&0x3f), 2
	}
	r, size := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && size == 1 && len(s) >= 3 && s[0] == 0xed && s[1]&0xe0 == 0xa0 && s[2]&0xc0 == 0x80 {
		return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), 3
	}
	return r, size
}

// appendSurrogate encodes a surrogate as UTF-8 would encode it if it were a character.
func appendSurrogate(b []byte, r rune) []byte {
	return append(b, 0xed, byte(0x80|r>>6&0x3f), byte(0x80|r&0x3f))
}
