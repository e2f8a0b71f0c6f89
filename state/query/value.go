package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/state"
)

// maxState is the longest name of a state.
const maxState = 64

// value reads a word as a value of a field.
func (p *parser) value(f Field, w word) Value {
	if p.err != nil {
		return Value{}
	}
	var v Value
	var wrong *Error
	switch f.Type() {
	case Word, Text:
		v, wrong = textValue(f, w)
	case Set:
		v, wrong = setValue(f, w)
	default:
		v, wrong = rangeValue(f, w)
	}
	if wrong == nil {
		return v
	}
	start, end := w.start, w.end
	if start == end { // nothing is there: mark what asks for it
		start = max(start-1, 0)
	}
	p.fail(start, end, wrong.Message)
	p.err.Nearest = wrong.Nearest
	return Value{}
}

func wrongf(format string, args ...any) *Error { return &Error{Message: fmt.Sprintf(format, args...)} }

// exactly returns the value that a visitor means by text as it stands.
func exactly(f Field, text string) Value {
	switch {
	case f == State:
		return Value{Match: Exact, Text: strings.ToUpper(text)}
	case f.Type() == Text:
		return Value{Match: Contains, Text: text}
	default:
		return Value{Match: Exact, Text: text}
	}
}

// textValue reads a value of a Word or a Text.
func textValue(f Field, w word) (Value, *Error) {
	anywhere := f.Type() == Text
	tilde := false
	if bare, ok := w.bare(); ok {
		if n := len(bare); n > 2 && bare[0] == '/' && bare[n-1] == '/' {
			return Value{}, wrongf("regular expressions are not supported; put text with / around it in quotes")
		}
	}
	if len(w.parts) > 0 && !w.parts[0].quoted {
		first := &w.parts[0]
		if f != Any && strings.ContainsAny(first.text[:1], "<>") {
			return Value{}, wrongf("%s: is not compared by %c; put it in quotes to look for it", f, first.text[0])
		}
		first.text, tilde = strings.CutPrefix(first.text, "~")
		anywhere = anywhere || tilde
	}
	star, literal := false, false
	for _, part := range w.parts {
		if strings.Contains(part.text, "*") {
			star, literal = star || !part.quoted, literal || part.quoted
		}
	}
	text := w.text()
	switch {
	case text == "" && f == Any:
		return Value{}, wrongf("there is no text to look for")
	case text == "":
		return Value{}, wrongf("%s: needs a value", f)
	case star && literal:
		return Value{}, wrongf("* stands for any characters here, so it cannot be looked for: put all of them in quotes")
	case star && tilde && f.Type() == Word:
		return Value{}, wrongf("~ finds text at any place without *; put * in quotes to look for it")
	case star:
		return patternOf(text, f.Type() == Text), nil
	case anywhere:
		return Value{Match: Contains, Text: text}, nil
	default:
		return Value{Match: Exact, Text: text}, nil
	}
}

// patternOf returns the simplest value that matches like a pattern does, either of a whole or of any part.
func patternOf(pattern string, anywhere bool) Value {
	for strings.Contains(pattern, "**") {
		pattern = strings.ReplaceAll(pattern, "**", "*")
	}
	if !anywhere || pattern == "*" {
		return Value{Match: Pattern, Text: pattern}
	}
	pattern = strings.Trim(pattern, "*")
	if !strings.Contains(pattern, "*") {
		return Value{Match: Contains, Text: pattern}
	}
	return Value{Match: Pattern, Text: pattern}
}

// setValue reads a state or an Is value.
func setValue(f Field, w word) (Value, *Error) {
	text := w.text()
	if text == "" {
		return Value{}, wrongf("%s: needs a value", f)
	}
	if f == State {
		if !validState(text) {
			return Value{}, wrongf("a state has 1 to %d letters, digits, _ and -", maxState)
		}
		return Value{Match: Exact, Text: strings.ToUpper(text)}, nil
	}
	if f.Causal() || f == Cluster {
		return Value{Match: Exact, Text: text}, nil
	}
	text = strings.ToLower(text)
	if f == Dup {
		return dupValue(text)
	}
	if f == Outbox {
		return outboxValue(text)
	}
	if text == "orphan" {
		text = IsOrphaned
	}
	if slices.Contains(IsValues(), text) {
		return Value{Match: Exact, Text: text}, nil
	}
	wrong := wrongf("is: takes %s", strings.Join(IsValues(), ", "))
	if wrong.Nearest = Nearest(text, IsValues()); wrong.Nearest != "" {
		wrong.Message = fmt.Sprintf("there is no is:%s; the nearest is is:%s", text, wrong.Nearest)
	}
	return Value{}, wrong
}

// dupValue reads a value of Dup in lower case.
func dupValue(text string) (Value, *Error) {
	if _, ok := state.ParseCallID(text); ok || slices.Contains(DupValues(), text) {
		return Value{Match: Exact, Text: text}, nil
	}
	wrong := wrongf("dup: takes %s, or the 32 hexadecimal digits of a call", strings.Join(DupValues(), ", "))
	if wrong.Nearest = Nearest(text, DupValues()); wrong.Nearest != "" {
		wrong.Message = fmt.Sprintf("there is no dup:%s; the nearest is dup:%s", text, wrong.Nearest)
	}
	return Value{}, wrong
}

func validState(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return len(s) >= 1 && len(s) <= maxState
}

// rangeValue reads a value of a Time, a Duration or a Number.
func rangeValue(f Field, w word) (Value, *Error) {
	text := w.text()
	low, high, isRange := strings.Cut(text, "..")
	r := ends{field: f}
	switch {
	case text == "":
		return Value{}, wrongf("%s: needs a value", f)
	case text == "*" || text == "..":
		return Value{Match: Range}, nil
	case strings.HasPrefix(text, ">="):
		r.from(text[2:])
	case strings.HasPrefix(text, ">"):
		r.above(text[1:])
	case strings.HasPrefix(text, "<="):
		r.to(text[2:])
	case strings.HasPrefix(text, "<"):
		r.below(text[1:])
	case isRange:
		if low != "" {
			r.from(low)
		}
		if high != "" {
			r.to(sameDay(low, high))
		}
	default:
		r.at(text)
	}
	if r.wrong != nil {
		return Value{}, r.wrong
	}
	if r.min.Set && r.max.Set && r.min.Relative == r.max.Relative && r.min.N > r.max.N {
		return Value{}, wrongf("the range ends before it begins")
	}
	return Value{Match: Range, Min: r.min, Max: r.max}, nil
}

// sameDay completes an end that is but a time of day with the date and zone of the start.
func sameDay(start, end string) string {
	const date = len("2026-11-20")
	if len(start) <= date || start[date] != 'T' || len(end) < 2 || len(end) > 2 && end[2] != ':' {
		return end
	}
	zone := ""
	if i := strings.IndexAny(start[date:], "Z+-"); i >= 0 && !strings.ContainsAny(end, "Z+-") {
		zone = start[date+i:]
	}
	return start[:date+1] + end + zone
}

// ends reads the ends of a range. It keeps the first thing that is wrong.
type ends struct {
	field    Field
	min, max Bound
	wrong    *Error
}

// read reads one end as the first and the last value that it stands for: a date is all of its day. point is
// whether times of day are instants, not all of the unit that they name.
func (r *ends) read(s string, point bool) (first, last Bound) {
	switch r.field.Type() {
	case Number:
		n, err := strconv.ParseInt(s, 10, 64)
		if err == nil {
			return Bound{Set: true, N: n}, Bound{Set: true, N: n}
		}
		r.wrong = wrongf("%q is not a whole number", s)
	case Duration:
		if n, ok := parseDuration(s); ok {
			return Bound{Set: true, N: n}, Bound{Set: true, N: n}
		}
		r.wrong = wrongf("%q is not a duration; write 150ms, 2s or 1h30m", s)
	default:
		if n, ok := relative(s); ok {
			return Bound{Set: true, Relative: true, N: n}, Bound{Set: true, Relative: true, N: n}
		}
		if at, ok := parseInstant(s); ok {
			if point && !at.date {
				at.last = at.first
			}
			return Bound{Set: true, N: at.first}, Bound{Set: true, N: at.last}
		}
		r.wrong = wrongf("%q is not a time; write 2026-11-20, 2026-11-20T10:00, -1h or now", s)
	}
	return Bound{}, Bound{}
}

func (r *ends) from(s string) { r.min, _ = r.read(s, true) }
func (r *ends) to(s string)   { _, r.max = r.read(s, true) }

func (r *ends) below(s string) {
	r.max, _ = r.read(s, true)
	r.max.Exclusive = true
}

func (r *ends) above(s string) {
	first, last := r.read(s, true)
	if r.min = last; first == last {
		r.min.Exclusive = true
		return
	}
	r.min.N++ // after a whole day
}

func (r *ends) at(s string) {
	if r.min, r.max = r.read(s, false); r.min.Relative {
		r.wrong = wrongf("%s is a single instant; write %s:>%[1]s for all since then", s, r.field)
	}
}

// relative reads a distance from now: now, -1h, now-1h.
func relative(s string) (int64, bool) {
	rest, now := strings.CutPrefix(s, "now")
	if rest == "" {
		return 0, now
	}
	if sign(rest) == 0 {
		return 0, false
	}
	return parseDuration(rest)
}
