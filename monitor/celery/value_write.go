package celery

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
)

// JSON returns v as JSON, false unless it consists of what JSON knows, tuples included, and nothing of it is in doubt.
func (v *Value) JSON() (json.RawMessage, bool) {
	b, ok := v.appendJSON(nil)
	return b, ok
}

func (v *Value) appendJSON(b []byte) ([]byte, bool) {
	switch v.Kind {
	case ValueNone:
		return append(b, "null"...), true
	case ValueBool:
		return append(b, strings.ToLower(v.Text)...), true
	case ValueInt, ValueFloat:
		return append(b, v.Text...), true
	case ValueText:
		quoted, err := json.Marshal(v.Text)
		return append(b, quoted...), err == nil && !v.Doubtful && !maybeCut(v.Text)
	case ValueList, ValueTuple, ValueDict:
	case ValueSet, ValueObject, ValueCut:
		return b, false
	}
	begin, end := byte('['), byte(']')
	if v.Kind == ValueDict {
		begin, end = '{', '}'
	}
	b = append(b, begin)
	known := make(map[string]bool)
	for i := range v.Items {
		if i > 0 {
			b = append(b, ',')
		}
		var ok bool
		if v.Kind == ValueDict {
			key := &v.Keys[i]
			if key.Kind != ValueText || known[key.Text] {
				return b, false
			}
			known[key.Text] = true
			if b, ok = key.appendJSON(b); !ok {
				return b, false
			}
			b = append(b, ':')
		}
		if b, ok = v.Items[i].appendJSON(b); !ok {
			return b, false
		}
	}
	return append(b, end), true
}

// Python returns v as an expression of Python, false if something of it is in doubt or can only be looked at. Names of
// classes are as in the repr: they must be imported.
func (v *Value) Python() (string, bool) {
	w := pythonWriter{exact: true}
	w.value(v)
	return w.text.String(), w.exact
}

// String is v as Python writes it, on one line. What was left out is marked by three dots.
func (v *Value) String() string {
	var w pythonWriter
	w.value(v)
	return w.text.String()
}

// pythonWriter writes values as expressions of Python.
type pythonWriter struct {
	text  strings.Builder
	exact bool // nothing that was written is in doubt
}

func (w *pythonWriter) value(v *Value) {
	begin, end := "", ""
	switch v.Kind {
	case ValueText:
		w.exact = w.exact && !v.Doubtful && !maybeCut(v.Text)
		w.text.WriteString(pythonText(v.Text))
		return
	case ValueObject:
		called := strings.HasSuffix(v.Text, ")") || strings.HasPrefix(v.Text, "b'") || strings.HasPrefix(v.Text, `b"`)
		w.exact = w.exact && called && v.Text[0] != '<' && !v.Cut()
		w.text.WriteString(v.Text)
		return
	case ValueCut:
		w.exact = false
		w.text.WriteString(v.Text)
		return
	case ValueNone, ValueBool, ValueInt, ValueFloat:
		w.text.WriteString(v.Text)
		return
	case ValueList:
		begin, end = "[", "]"
	case ValueTuple:
		if begin, end = "(", ")"; len(v.Items) == 1 {
			end = ",)"
		}
	case ValueSet, ValueDict:
		begin, end = "{", "}"
	}
	w.text.WriteString(begin)
	for i := range v.Items {
		if i > 0 {
			w.text.WriteString(", ")
		}
		if v.Kind == ValueDict && v.Items[i].Kind != ValueCut {
			w.value(&v.Keys[i])
			w.text.WriteString(": ")
		}
		w.value(&v.Items[i])
	}
	w.text.WriteString(end)
}

// pythonText is a text as Python's repr writes it.
func pythonText(s string) string {
	quote := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, c := range s {
		switch {
		case c == quote || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			b.WriteString(`\x` + hexDigits(c, 2))
		case c < 0x10000:
			b.WriteString(`\u` + hexDigits(c, 4))
		default:
			b.WriteString(`\U` + hexDigits(c, 8))
		}
	}
	b.WriteRune(quote)
	return b.String()
}

func hexDigits(c rune, width int) string {
	s := strconv.FormatInt(int64(c), 16)
	return strings.Repeat("0", max(width-len(s), 0)) + s
}
