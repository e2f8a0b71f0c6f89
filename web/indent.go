package web

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxIndent is how many levels of JSON are indented. What is below stays on one line: indentation of any depth would make
// text as long as the square of what was stored.
const maxIndent = 16

// indent returns JSON as people read it, cut to at most most bytes, and whether that is all of it. What is no JSON comes
// back in some form.
func indent(raw json.RawMessage, most int) (text string, whole bool) {
	w := indenter{in: raw}
	for len(w.in) > 0 && len(w.out) <= most {
		w.token(most)
	}
	if len(w.in) == 0 && len(w.out) <= most {
		return string(w.out), true
	}
	return strings.ToValidUTF8(string(w.out[:min(len(w.out), most)]), ""), false
}

// indenter moves tokens from in to out.
type indenter struct {
	in, out []byte
	level   int // of open containers
}

func (w *indenter) token(most int) {
	c := w.in[0]
	switch c {
	case ' ', '\t', '\r', '\n':
		w.in = w.in[1:]
		return
	case '"':
		n := quoted(w.in)
		w.out = append(w.out, w.in[:min(n, most+1)]...)
		w.in = w.in[n:]
		return
	case '}', ']':
		inner := w.level
		w.level--
		w.line(inner)
	}
	w.out = append(w.out, c)
	w.in = w.in[1:]
	switch c {
	case '{', '[':
		w.level++
		rest := bytes.TrimLeft(w.in, " \t\r\n")
		if len(rest) > 0 && (rest[0] == '}' || rest[0] == ']') {
			w.out = append(w.out, rest[0])
			w.in = rest[1:]
			w.level--
			return
		}
		w.line(w.level)
	case ',':
		w.line(w.level)
	case ':':
		w.out = append(w.out, ' ')
	}
}

// line begins one, unless what is at that level stays on the line it is on.
func (w *indenter) line(level int) {
	if level > maxIndent {
		return
	}
	w.out = append(w.out, '\n')
	for range w.level {
		w.out = append(w.out, "  "...)
	}
}

// quoted is how long the string is that b begins with, quotes included.
func quoted(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}
