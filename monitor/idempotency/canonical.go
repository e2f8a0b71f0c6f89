package idempotency

import (
	"bytes"
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
	switch v.kind {
	case isNull:
		return append(b, "null"...)
	case isFalse:
		return append(b, "false"...)
	case isTrue:
		return append(b, "true"...)
	case isInt:
		return append(b, v.text...)
	case isFloat:
		return appendFloat(b, v.number)
	case isText:
		return appendText(b, v.text)
	case isArray:
		b = append(b, '[')
		for i := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.items[i].AppendTo(b)
		}
		return append(b, ']')
	default:
		b = append(b, '{')
		for i := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, v.keys[i]), ':')
			b = v.items[i].AppendTo(b)
		}
		return append(b, '}')
	}
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

// appendText writes a string as Python does with ensure_ascii.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	for len(s) > 0 {
		n := 0
		for n < len(s) && plain(s[n]) {
			n++
		}
		b = append(b, s[:n]...)
		if s = s[n:]; s == "" {
			break
		}
		r, size := decode(s)
		s = s[size:]
		switch r {
		case '"', '\\':
			b = append(b, '\\', byte(r))
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		case '\f':
			b = append(b, `\f`...)
		case '\b':
			b = append(b, `\b`...)
		default:
			if r > 0xffff {
				high, low := utf16.EncodeRune(r)
				b = appendUnit(b, high)
				r = low
			}
			b = appendUnit(b, r)
		}
	}
	return append(b, '"')
}

func plain(c byte) bool { return c >= ' ' && c <= '~' && c != '"' && c != '\\' }

func appendUnit(b []byte, r rune) []byte {
	return append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// decode reads the first code point of s, which may be a surrogate. It is (utf8.RuneError, 1) where there is none.
func decode(s string) (rune, int) {
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
