package celery

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// wrapped is a value that Kombu writes in JSON as an object with __type__ and __value__.
func wrapped(n node) (kind string, value node, ok bool) {
	if n.kind != isObject || !wraps(n) {
		return "", node{}, false
	}
	return n.items[slices.Index(n.keys, kombuType)].text, n.items[slices.Index(n.keys, kombuValue)], true
}

// bytesOf returns the value of wrapped bytes.
func bytesOf(kind string, value node) ([]byte, bool) {
	switch kind {
	case kombuText:
		return []byte(value.text), true
	case kombuBytes:
		b, err := base64.StdEncoding.DecodeString(value.text)
		return b, err == nil
	}
	return nil, false
}

// appendMsgpack appends a value as MessagePack, as msgpack-python writes it with use_bin_type.
func appendMsgpack(dst []byte, n node, at *place) ([]byte, error) {
	switch n.kind {
	case isNull:
		return append(dst, 0xc0), nil
	case isBool:
		if n.text == "true" {
			return append(dst, 0xc3), nil
		}
		return append(dst, 0xc2), nil
	case isInt:
		return appendMsgpackInt(dst, n.text, at)
	case isFloat:
		f, _ := strconv.ParseFloat(n.text, 64) // checked when it was parsed
		return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(f)), nil
	case isText:
		return append(appendHead(dst, 0xa0, 31, 0xd9, len(n.text)), n.text...), nil
	case isArray:
		dst = appendHead(dst, 0x90, 15, 0, len(n.items))
		for i, item := range n.items {
			var err error
			if dst, err = appendMsgpack(dst, item, &place{above: at, index: i}); err != nil {
				return dst, err
			}
		}
		return dst, nil
	case isObject:
	}
	if kind, value, ok := wrapped(n); ok {
		b, isBytes := bytesOf(kind, value)
		if !isBytes {
			return dst, &MessageError{Path: at.String(), Message: "must not be a " + kind + ", which MessagePack does not have"}
		}
		return append(appendHead(dst, 0, -1, 0xc4, len(b)), b...), nil
	}
	dst = appendHead(dst, 0x80, 15, 1, len(n.items))
	for i, item := range n.items {
		dst = append(appendHead(dst, 0xa0, 31, 0xd9, len(n.keys[i])), n.keys[i]...)
		var err error
		if dst, err = appendMsgpack(dst, item, &place{above: at, name: n.keys[i], index: -1}); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendHead appends the type and length of what follows: short up to most, else by long for 8, 16 and 32 bits; 0 and 1
// stand for the two forms of arrays and maps.
func appendHead(dst []byte, short byte, most int, long byte, n int) []byte {
	switch {
	case n <= most:
		return append(dst, short|byte(n))
	case long <= 1 && n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, 0xdc+2*long), uint16(n))
	case long <= 1:
		return binary.BigEndian.AppendUint32(append(dst, 0xdd+2*long), uint32(n))
	case n <= math.MaxUint8:
		return append(dst, long, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, long+1), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, long+2), uint32(n))
}

func appendMsgpackInt(dst []byte, text string, at *place) ([]byte, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n >= -32 && n <= 127 {
			return append(dst, byte(n)), nil
		}
		return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(n)), nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return dst, &MessageError{Path: at.String(), Message: "must fit 64 bits in MessagePack"}
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xcf), n), nil
}

// maxSimpleKey is how long a key may be without a question mark before it (PyYAML: 1,024 characters).
const maxSimpleKey = 128

// appendYAML appends a value as YAML 1.1 on one line, as PyYAML's safe loader reads it.
func appendYAML(dst []byte, n node, at *place) ([]byte, error) {
	switch n.kind {
	case isNull:
		return append(dst, "null"...), nil
	case isBool, isInt:
		return append(dst, n.text...), nil
	case isFloat:
		f, _ := strconv.ParseFloat(n.text, 64)
		return appendYAMLFloat(dst, f), nil
	case isText:
		return appendYAMLText(dst, n.text), nil
	case isArray:
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			var err error
			if dst, err = appendYAML(dst, item, &place{above: at, index: i}); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case isObject:
	}
	if kind, value, ok := wrapped(n); ok {
		b, isBytes := bytesOf(kind, value)
		switch {
		case isBytes:
			return append(append(append(dst, yamlBinary+` "`...), base64.StdEncoding.EncodeToString(b)...), '"'), nil
		case kind == kombuDatetime || kind == kombuDate:
			if t, ok := yamlTime(value.text); ok {
				return append(dst, t...), nil
			}
		}
		return dst, &MessageError{Path: at.String(), Message: "must not be a " + kind + ", which YAML does not have"}
	}
	dst = append(dst, '{')
	for i, item := range n.items {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if len(n.keys[i]) > maxSimpleKey {
			dst = append(dst, "? "...)
		}
		dst = append(appendYAMLText(dst, n.keys[i]), ": "...)
		var err error
		if dst, err = appendYAML(dst, item, &place{above: at, name: n.keys[i], index: -1}); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// yamlTime returns a date or time of ISO 8601 as a timestamp of YAML, false if it has none: its seconds are required, and
// colons within flow mappings need no quotes there.
func yamlTime(iso string) (string, bool) {
	text := strings.Replace(iso, "T", " ", 1)
	return "!!timestamp '" + text + "'", resolve(text) == "!!timestamp"
}

// appendYAMLFloat appends a number that YAML 1.1 takes for a float: with a point, and a sign in its exponent.
func appendYAMLFloat(dst []byte, f float64) []byte {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	mantissa, exponent, scientific := strings.Cut(text, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	dst = append(dst, mantissa...)
	if scientific {
		dst = append(append(dst, 'e'), exponent...)
	}
	return dst
}

// appendYAMLText appends text in double quotes, with everything but ASCII escaped.
func appendYAMLText(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	escape := func(letter byte, r rune, digits int) {
		dst = append(dst, '\\', letter)
		for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
			dst = append(dst, hex[r>>shift&15])
		}
	}
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r >= ' ' && r < 0x7f:
			dst = append(dst, byte(r))
		case r <= 0xff:
			escape('x', r, 2)
		case r <= 0xffff:
			escape('u', r, 4)
		case r <= utf8.MaxRune:
			escape('U', r, 8)
		}
	}
	return append(dst, '"')
}
