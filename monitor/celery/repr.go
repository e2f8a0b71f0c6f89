package celery

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of Celery's saferepr, as argsrepr and kwargsrepr are written with.
const (
	maxRepr   = 1024 // characters
	maxLevels = 3    // of containers
)

// Repr writes an array or object of JSON as Celery's saferepr would, cut to its limits. An array is a tuple, as
// positional arguments are. Text that is not JSON is returned unchanged.
func Repr(v json.RawMessage) string {
	n, err := parseNode(v, "")
	if err != nil {
		return string(v)
	}
	return pythonRepr(n)
}

// pythonRepr is Repr of what was parsed.
func pythonRepr(n node) string {
	w := &reprWriter{left: maxRepr}
	w.value(n, true)
	return w.out.String()
}

// reprWriter does what saferepr does, token by token, so that it cuts where that cuts (celery/utils/saferepr.py, from 5.7).
type reprWriter struct {
	out   strings.Builder
	left  int // characters
	level int // of open containers
	// cut is set once nothing but closing brackets of containers that were opened is written; hidden counts those open
	// that were not.
	cut    bool
	hidden int
}

// token writes what may be cut.
func (w *reprWriter) token(s string) {
	switch {
	case w.cut:
	case w.left <= 0:
		w.out.WriteString(", ...")
		w.cut = true
	default:
		w.out.WriteString(s)
		w.left -= utf8.RuneCountInString(s)
	}
}

// open begins a container.
func (w *reprWriter) open(s string) {
	w.level++
	w.token(s)
	if w.cut {
		w.hidden++
	}
}

// close ends a container. The bracket of one that was shown is shown even where nothing else is left.
func (w *reprWriter) close(s string) {
	w.level--
	switch {
	case w.cut && w.hidden > 0:
		w.hidden--
	case w.cut || w.left <= 0:
		w.out.WriteString(s)
	default:
		w.token(s)
	}
}

func (w *reprWriter) value(n node, tuple bool) {
	switch n.kind {
	case isArray:
		begin, end := "[", "]"
		if tuple {
			begin, end = "(", ")"
			if len(n.items) == 1 {
				end = ",)"
			}
		}
		w.container(n, begin, end)
	case isObject:
		w.container(n, "{", "}")
	case isText:
		w.token(quote(n.text, w.left))
	case isNull:
		w.token(shorten("None", w.left))
	case isBool:
		w.token(shorten(strings.ToUpper(n.text[:1])+n.text[1:], w.left))
	case isInt:
		if n.text == "-0" {
			n.text = "0"
		}
		w.token(shorten(n.text, w.left))
	case isFloat:
		w.token(shorten(pythonFloat(n.text), w.left))
	}
}

func (w *reprWriter) container(n node, begin, end string) {
	if w.level >= maxLevels {
		w.token(begin + "..." + end)
		return
	}
	w.open(begin)
	for i, item := range n.items {
		if i > 0 {
			w.token(", ")
		}
		if n.kind == isObject {
			w.token(quote(n.keys[i], w.left))
			w.token(": ")
		}
		w.value(item, false)
	}
	w.close(end)
}

// quote is text between quotes. Celery escapes quotes and nothing else, not even backslashes.
func quote(s string, left int) string {
	return "'" + strings.ReplaceAll(shorten(s, left), "'", `\'`) + "'"
}

// shorten cuts what is as long as there is room, or longer, back to the space before.
func shorten(s string, left int) string {
	if left <= 0 || utf8.RuneCountInString(s) < left {
		return s
	}
	at := 0
	for range left {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	s = s[:at]
	if n := strings.LastIndexByte(s, ' '); n >= 0 {
		s = s[:n]
	}
	return s + "..."
}

// pythonFloat is a float as Python writes it.
func pythonFloat(written string) string {
	f, err := strconv.ParseFloat(written, 64)
	if err != nil {
		return written
	}
	return formatFloat(f)
}

// formatFloat writes a finite float as Python does.
func formatFloat(f float64) string {
	s := strconv.FormatFloat(f, 'e', -1, 64)
	exponent, err := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	if err != nil || exponent < -4 || exponent >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
