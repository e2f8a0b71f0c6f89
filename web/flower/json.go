package flower

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	key   string
	value any
}

// encode returns the JSON of a value as Flower writes it: with a space after colons and commas, non-ASCII text escaped, and
// no "</". Values are nil, booleans, integers, float64, strings and pointers to these, object, json.RawMessage, and slices
// of any of them.
func encode(value any) []byte {
	return escaped(appendValue(nil, value))
}

func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case float64:
		return appendFloat(b, v)
	case string:
		return appendString(b, v)
	case json.RawMessage:
		return appendRaw(b, v)
	case object:
		return appendObject(b, v)
	case *bool:
		return appendPointer(b, v)
	case *int64:
		return appendPointer(b, v)
	case *float64:
		return appendPointer(b, v)
	case *string:
		return appendPointer(b, v)
	case []any:
		return appendArray(b, v)
	case []string:
		return appendArray(b, v)
	case []object:
		return appendArray(b, v)
	case []json.RawMessage:
		return appendArray(b, v)
	}
	panic("flower: no JSON for this type") // of our own values
}

func appendPointer[T any](b []byte, v *T) []byte {
	if v == nil {
		return append(b, "null"...)
	}
	return appendValue(b, *v)
}

func appendArray[T any](b []byte, list []T) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendValue(b, v)
	}
	return append(b, ']')
}

func appendObject(b []byte, o object) []byte {
	b = append(b, '{')
	for i, m := range o {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendString(b, m.key)
		b = append(b, ": "...)
		b = appendValue(b, m.value)
	}
	return append(b, '}')
}

// appendFloat writes a float as Python's repr does.
func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "NaN"...)
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	}
	if size := math.Abs(f); size != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.AppendFloat(b, f, 'e', -1, 64) // with two digits of exponent, as in Python
	}
	n := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if bytes.IndexByte(b[n:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

// appendString escapes everything but printable ASCII.
func appendString(b []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	unit := func(u rune) {
		b = append(b, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
	}
	b = append(b, '"')
	for _, r := range s {
		switch i := strings.IndexRune("\"\\\n\r\t\f\b", r); {
		case i >= 0:
			b = append(b, '\\', `"\nrtfb`[i])
		case ' ' <= r && r <= '~':
			b = append(b, byte(r))
		case r > 0xffff:
			unit(0xd800 + (r-0x10000)>>10)
			unit(0xdc00 + (r-0x10000)&0x3ff)
		default:
			unit(r)
		}
	}
	return append(b, '"')
}

// appendRaw writes JSON with Python's spaces. Numbers stay as they are.
func appendRaw(b []byte, raw json.RawMessage) []byte {
	if !json.Valid(raw) {
		return append(b, "null"...)
	}
	for i := 0; i < len(raw); {
		switch c := raw[i]; c {
		case ' ', '\t', '\n', '\r':
			i++
		case ',', ':':
			b = append(b, c, ' ')
			i++
		case '"':
			n := stringEnd(raw[i:])
			var s string
			_ = json.Unmarshal(raw[i:i+n], &s) // valid
			b = appendString(b, s)
			i += n
		default:
			b = append(b, c)
			i++
		}
	}
	return b
}

// stringEnd is the length of the string that raw begins with.
func stringEnd(raw []byte) int {
	for i := 1; i < len(raw); {
		switch raw[i] {
		case '\\':
			i += 2
		case '"':
			return i + 1
		default:
			_, n := utf8.DecodeRune(raw[i:])
			i += n
		}
	}
	return len(raw)
}
