package idempotency

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Parse reads JSON as Python's json.loads does: NaN, Infinity and -Infinity are numbers, a number out of range is an
// infinity or zero, of keys that are there twice the last one counts, and a string may hold half of a surrogate pair.
// Integers may be of any length, which Python allows up to 4,300 digits unless told otherwise. The text is UTF-8, with
// or without a byte order mark. The error is an [*Error].
func Parse(text []byte) (Value, error) {
	if len(text) > MaxBytes {
		return Value{}, tooLong()
	}
	p := newParser(strings.TrimPrefix(string(text), "\ufeff"))
	v, err := p.value(0)
	if err == nil && p.skip() < len(p.s) {
		err = p.expected("nothing more")
	}
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

// parser reads JSON. Its methods return *Error and not error, so that containers can add where it is.
type parser struct {
	s      string
	valid  bool // UTF-8; without, it may hold surrogates
	at     int
	values int
	slow   int // floats for which a fast way does not exist
	// Items and keys of the containers that are open, each container's after those of the one around it.
	items []Value
	keys  []string
	order []entry // scratch of sort
}

func newParser(s string) parser { return parser{s: s, valid: utf8.ValidString(s)} }

// skip moves past white space and returns where that is.
func (p *parser) skip() int {
	for p.at < len(p.s) && (p.s[p.at] == ' ' || p.s[p.at] == '\n' || p.s[p.at] == '\t' || p.s[p.at] == '\r') {
		p.at++
	}
	return p.at
}

func (p *parser) expected(what string) *Error {
	if p.at >= len(p.s) {
		return &Error{Message: "is not JSON: " + what + " expected at the end"}
	}
	return &Error{Message: fmt.Sprintf("is not JSON: %s expected at byte %d", what, p.at)}
}

// take moves past prefix, if it is next.
func (p *parser) take(prefix string) bool {
	ok := strings.HasPrefix(p.s[p.at:], prefix)
	if ok {
		p.at += len(prefix)
	}
	return ok
}

func (p *parser) value(depth int) (Value, *Error) {
	if p.values++; p.values > MaxValues {
		return Value{}, tooMany()
	}
	if p.skip() == len(p.s) {
		return Value{}, p.expected("a value")
	}
	switch c := p.s[p.at]; {
	case c == '"':
		text, err := p.text()
		return Value{kind: isText, text: text}, err
	case c == '{':
		return p.object(depth + 1)
	case c == '[':
		return p.array(depth + 1)
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case p.take("null"):
		return Value{}, nil
	case p.take("true"):
		return Value{kind: isTrue}, nil
	case p.take("false"):
		return Value{kind: isFalse}, nil
	case p.take("NaN"):
		return Value{kind: isFloat, number: math.NaN()}, nil
	case p.take("Infinity"):
		return Value{kind: isFloat, number: math.Inf(1)}, nil
	default:
		return Value{}, p.expected("a value")
	}
}

// digits moves past decimal digits and returns how many there are.
func (p *parser) digits() int {
	start := p.at
	for p.at < len(p.s) && '0' <= p.s[p.at] && p.s[p.at] <= '9' {
		p.at++
	}
	return p.at - start
}

// number reads a number. What does not continue one is left, as Python leaves it: the dot of "1." is not part of it.
func (p *parser) number() (Value, *Error) {
	start := p.at
	if p.take("-Infinity") {
		return Value{kind: isFloat, number: math.Inf(-1)}, nil
	}
	p.take("-")
	if !p.take("0") && p.digits() == 0 {
		return Value{}, p.expected("a digit")
	}
	end := p.at
	if p.take(".") && p.digits() > 0 {
		end = p.at
	}
	p.at = end
	if p.take("e") || p.take("E") {
		if !p.take("+") {
			p.take("-")
		}
		if p.digits() == 0 {
			p.at = end
		}
	}
	written := p.s[start:p.at]
	if strings.ContainsAny(written, ".eE") {
		return p.float(written)
	}
	if written == "-0" {
		written = "0"
	}
	return Value{kind: isInt, text: written}, nil
}

func (p *parser) array(depth int) (Value, *Error) {
	if depth > MaxDepth {
		return Value{}, tooDeep()
	}
	p.at++
	if p.skip(); p.take("]") {
		return Value{kind: isArray}, nil
	}
	start := len(p.items)
	for {
		item, err := p.value(depth)
		if err != nil {
			return Value{}, err.within(fmt.Sprintf("[%d]", len(p.items)-start))
		}
		p.items = append(p.items, item)
		if p.skip(); p.take("]") {
			break
		}
		if !p.take(",") {
			return Value{}, p.expected(`"," or "]"`)
		}
	}
	v := Value{kind: isArray, parts: &parts{items: append(make([]Value, 0, len(p.items)-start), p.items[start:]...)}}
	p.items = p.items[:start]
	return v, nil
}

func (p *parser) object(depth int) (Value, *Error) {
	if depth > MaxDepth {
		return Value{}, tooDeep()
	}
	p.at++
	if p.skip(); p.take("}") {
		return Value{kind: isObject}, nil
	}
	start, keys := len(p.items), len(p.keys)
	for {
		if p.skip() == len(p.s) || p.s[p.at] != '"' {
			return Value{}, p.expected("a key in quotes")
		}
		key, err := p.text()
		if err != nil {
			return Value{}, err
		}
		if p.skip(); !p.take(":") {
			return Value{}, p.expected(`":"`)
		}
		item, err := p.value(depth)
		if err != nil {
			return Value{}, err.within(spell(key))
		}
		p.items, p.keys = append(p.items, item), append(p.keys, key)
		if p.skip(); p.take("}") {
			break
		}
		if !p.take(",") {
			return Value{}, p.expected(`"," or "}"`)
		}
	}
	v := p.sort(p.keys[keys:], p.items[start:])
	p.items, p.keys = p.items[:start], p.keys[:keys]
	return v, nil
}

// text reads a string.
func (p *parser) text() (string, *Error) {
	p.at++
	start := p.at
	var b []byte // what was read, if it is not as written
	for p.at < len(p.s) {
		switch c := p.s[p.at]; {
		case c == '"':
			s := p.s[start:p.at]
			if b != nil {
				s = string(append(b, s...))
			}
			p.at++
			return s, nil
		case c == '\\':
			b = append(b, p.s[start:p.at]...)
			var err *Error
			if b, err = p.escape(b); err != nil {
				return "", err
			}
			start = p.at
		case c < ' ':
			return "", p.expected("no control character in a string")
		case c < utf8.RuneSelf || p.valid:
			p.at++
		default:
			r, size := decode(p.s[p.at:])
			if r == utf8.RuneError && size == 1 {
				return "", &Error{Message: fmt.Sprintf("is not UTF-8 at byte %d", p.at)}
			}
			p.at += size
		}
	}
	return "", p.expected("the end of a string")
}

// escape reads what a backslash begins and appends it to b.
func (p *parser) escape(b []byte) ([]byte, *Error) {
	p.at++
	if p.at == len(p.s) {
		return nil, p.expected("the end of a string")
	}
	c := p.s[p.at]
	p.at++
	switch c {
	case '"', '\\', '/':
		return append(b, c), nil
	case 'b':
		return append(b, '\b'), nil
	case 'f':
		return append(b, '\f'), nil
	case 'n':
		return append(b, '\n'), nil
	case 'r':
		return append(b, '\r'), nil
	case 't':
		return append(b, '\t'), nil
	case 'u':
		r, ok := p.unit(p.at)
		if !ok {
			return nil, p.expected("four hexadecimal digits")
		}
		p.at += 4
		if !utf16.IsSurrogate(r) {
			return utf8.AppendRune(b, r), nil
		}
		if strings.HasPrefix(p.s[p.at:], `\u`) {
			low, ok := p.unit(p.at + 2)
			if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
				p.at += 6
				return utf8.AppendRune(b, pair), nil
			}
		}
		return appendSurrogate(b, r), nil
	default:
		p.at--
		return nil, p.expected("an escaped character")
	}
}

// unit reads four hexadecimal digits at a place.
func (p *parser) unit(at int) (rune, bool) {
	if len(p.s)-at < 4 {
		return 0, false
	}
	var r rune
	for _, c := range []byte(p.s[at : at+4]) {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case 'A' <= c && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
