package celery

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxValues is how many values of a repr are read.
const maxValues = 10_000

// ValueKind says what a Value is.
type ValueKind uint8

// Kinds of values.
const (
	ValueNone ValueKind = iota
	ValueBool
	ValueInt
	ValueFloat
	ValueText
	ValueList
	ValueTuple
	ValueSet
	ValueDict
	ValueObject // anything else, as it is written: Decimal('1.10'), <Order: 1>, nan
	ValueCut    // the place where something was left out
)

// Value is a value of Python as a repr shows it.
type Value struct {
	Kind  ValueKind
	Text  string  // the characters of a text; of other values without items, as written
	Keys  []Value // of a dict, each that of the item at its place
	Items []Value
	// Doubtful says that a text holds what it may not have been: a backslash, which saferepr does not escape, or what could
	// not be decoded.
	Doubtful bool
}

// ReadRepr reads a repr to be looked at. Unlike ParseRepr it also reads sets, dicts with other keys than text, objects,
// text with backslashes and what was cut short, and keeps them as they are written. It is false for what does not
// consist of such values, for more than 10,000 of them, and for what is longer than 64 KiB. It evaluates nothing.
func ReadRepr(repr string) (Value, bool) {
	if len(repr) > maxParsed || !utf8.ValidString(repr) {
		return Value{}, false
	}
	r := valueReader{s: repr}
	v, ok := r.value(0)
	return v, ok && r.s == ""
}

// valueReader reads the front of s.
type valueReader struct {
	s    string
	read int // values
}

func (r *valueReader) take(prefix string) bool {
	rest, ok := strings.CutPrefix(r.s, prefix)
	r.s = rest
	return ok
}

func (r *valueReader) value(level int) (Value, bool) {
	if r.read++; r.s == "" || level > maxLevel || r.read > maxValues {
		return Value{}, false
	}
	switch {
	case r.take("..."):
		return Value{Kind: ValueCut, Text: "..."}, true
	case r.take("["):
		return r.items(ValueList, "]", level)
	case r.take("("):
		return r.items(ValueTuple, ")", level)
	case r.take("{"):
		return r.items(ValueDict, "}", level)
	case r.s[0] == '\'':
		return r.text()
	case r.s[0] == '"':
		text, rest, ok := strings.Cut(r.s[1:], `"`)
		r.s = rest
		return Value{Kind: ValueText, Text: text, Doubtful: strings.ContainsAny(text, "\\\uFFFD")}, ok
	case r.s[0] == '<':
		return r.angled()
	}
	return r.word()
}

// items reads what is in a container up to its end. Braces without colons are those of a set.
func (r *valueReader) items(kind ValueKind, end string, level int) (Value, bool) {
	v := Value{Kind: kind}
	for n := 0; !r.take(end); n++ {
		if n > 0 && !r.take(", ") && (n > 1 || kind != ValueTuple || !r.take(",")) {
			return v, false
		}
		if n > 0 && r.take(end) {
			return v, kind == ValueTuple && n == 1
		}
		item, ok := r.value(level + 1)
		if !ok {
			return v, false
		}
		if v.Kind == ValueDict && n == 0 && item.Kind != ValueCut && !strings.HasPrefix(r.s, ": ") {
			v.Kind = ValueSet
		}
		if v.Kind == ValueDict && item.Kind != ValueCut {
			v.Keys = append(v.Keys, item)
			if !r.take(": ") {
				return v, false
			}
			if item, ok = r.value(level + 1); !ok {
				return v, false
			}
		} else if v.Kind == ValueDict {
			v.Keys = append(v.Keys, item)
		}
		v.Items = append(v.Items, item)
	}
	if kind != ValueTuple || len(v.Items) != 1 || v.Items[0].Kind == ValueCut {
		return v, true
	}
	inside := v.Items[0] // of parentheses, as a complex number has them
	return Value{Kind: ValueObject, Text: "(" + inside.Text + ")"}, inside.Kind == ValueObject
}

// text reads a text as literal.text does, but keeps backslashes that stand for themselves.
func (r *valueReader) text() (Value, bool) {
	r.take("'")
	v := Value{Kind: ValueText}
	var b strings.Builder
	for {
		n := strings.IndexAny(r.s, `'\`)
		if n < 0 {
			return v, false
		}
		b.WriteString(r.s[:n])
		closes := r.s[n] == '\''
		r.s = r.s[n+1:]
		switch {
		case closes:
			v.Text = b.String()
			v.Doubtful = v.Doubtful || strings.ContainsRune(v.Text, utf8.RuneError)
			return v, true
		case !r.take("'"):
			b.WriteByte('\\')
			v.Doubtful = true
		case r.s == "" || strings.IndexByte(",:)]}", r.s[0]) >= 0:
			return v, false // it may be the end
		default:
			b.WriteByte('\'')
		}
	}
}

// angled reads an object that is written in angle brackets.
func (r *valueReader) angled() (Value, bool) {
	open := 0
	for i := range len(r.s) {
		switch r.s[i] {
		case '<':
			open++
		case '>':
			if open--; open == 0 {
				return r.object(i + 1)
			}
		}
	}
	return Value{}, false
}

// word reads a word, or an object that is written as a call.
func (r *valueReader) word() (Value, bool) {
	n := strings.IndexFunc(r.s, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune("_.+-", c)
	})
	if n < 0 {
		n = len(r.s)
	}
	if n == 0 {
		return Value{}, false
	}
	rest := r.s[n:]
	switch {
	case rest != "" && rest[0] == '(':
		end := closing(rest)
		if end < 0 {
			return Value{}, false
		}
		return r.object(n + end + 1)
	case (r.s[:n] == "b" || r.s[:n] == "bytearray") && rest != "" && (rest[0] == '\'' || rest[0] == '"'):
		end := strings.IndexByte(rest[1:], rest[0])
		if end < 0 || strings.ContainsRune(rest[:end+1], '\\') {
			return Value{}, false
		}
		return r.object(n + end + 2)
	}
	v, ok := r.object(n)
	l := literal{}
	switch {
	case v.Text == "None":
		v.Kind = ValueNone
	case v.Text == "True" || v.Text == "False":
		v.Kind = ValueBool
	case isInteger(v.Text):
		v.Kind = ValueInt
	case strings.ContainsAny(v.Text, ".e") && l.isFloat(v.Text):
		v.Kind = ValueFloat
	}
	return v, ok
}

// closing is the place of the bracket that closes the first one, -1 if there is none. Brackets within quotes do not count.
func closing(s string) int {
	open, quote := 0, byte(0)
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '\'' || c == '"':
			quote = c
		case c == '(' || c == '[' || c == '{':
			open++
		case c == ')' || c == ']' || c == '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}

// object takes n bytes as an object, if a value can end there.
func (r *valueReader) object(n int) (Value, bool) {
	v := Value{Kind: ValueObject, Text: r.s[:n]}
	r.s = r.s[n:]
	return v, r.s == "" || strings.IndexByte(",:)]}", r.s[0]) >= 0
}

// Container reports whether v has items.
func (v *Value) Container() bool {
	return v.Kind == ValueList || v.Kind == ValueTuple || v.Kind == ValueSet || v.Kind == ValueDict
}

// Cut reports whether something of v, or of what it holds, may have been left out.
func (v *Value) Cut() bool {
	switch v.Kind {
	case ValueCut:
		return true
	case ValueText:
		return maybeCut(v.Text)
	case ValueObject:
		return strings.Contains(v.Text, "...")
	default:
	}
	for i := range v.Items {
		if v.Items[i].Cut() || v.Kind == ValueDict && v.Keys[i].Cut() {
			return true
		}
	}
	return false
}
