package celery

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxParsed is the length of a repr, in bytes, that is parsed. Longer fields of events are cut.
	maxParsed = 64 << 10
	// maxFar is how many floats of a repr may be near the ends of their range, where reading one takes 15 µs.
	maxFar = 100
)

// ParseRepr parses what Celery's saferepr wrote, if it is complete and consists of literals that JSON knows,
// tuples included. It is false for anything that is or may be cut short, and for anything ambiguous: saferepr
// escapes quotes but no backslashes, so text with a backslash can be read in two ways. It evaluates nothing, takes less
// than 10 ms, and is false for what is longer than 64 KiB.
func ParseRepr(repr string) (json.RawMessage, bool) {
	l := literal{s: repr}
	return l.parse()
}

// ParseReprObjects is ParseRepr that also takes Decimal, UUID, date and datetime without a time zone, as Python's repr
// writes them, for the objects by which Kombu 5.3 and newer encode these in JSON.
func ParseReprObjects(repr string) (json.RawMessage, bool) {
	l := literal{s: repr, objects: true}
	return l.parse()
}

// literal parses the front of s and appends JSON to out.
type literal struct {
	s       string
	out     []byte
	far     int  // floats near the ends of their range
	objects bool // are taken
}

func (l *literal) parse() (json.RawMessage, bool) {
	if len(l.s) > maxParsed || !utf8.ValidString(l.s) || strings.ContainsRune(l.s, utf8.RuneError) {
		return nil, false
	}
	if !l.value(0) || l.s != "" {
		return nil, false
	}
	return l.out, true
}

// take moves past prefix, if s begins with it.
func (l *literal) take(prefix string) bool {
	rest, ok := strings.CutPrefix(l.s, prefix)
	l.s = rest
	return ok
}

func (l *literal) value(level int) bool {
	if l.s == "" || level > maxLevel {
		return false
	}
	switch l.s[0] {
	case '[':
		return l.sequence("[", "]", level)
	case '(':
		return l.sequence("(", ")", level)
	case '{':
		return l.dict(level)
	case '\'':
		return l.text()
	default:
		return l.objects && l.object() || l.word()
	}
}

// sequence reads a list or a tuple. The tuple of one has a comma at its end, and no other has.
func (l *literal) sequence(begin, end string, level int) bool {
	l.take(begin)
	l.out = append(l.out, '[')
	for n := 0; !l.take(end); n++ {
		if n == 1 && end == ")" && strings.HasPrefix(l.s, ",)") {
			l.take(",)")
			break
		}
		if n > 0 {
			if !l.take(", ") {
				return false
			}
			l.out = append(l.out, ',')
		}
		if !l.value(level + 1) {
			return false
		}
		if n == 0 && end == ")" && strings.HasPrefix(l.s, ")") {
			return false // parentheses, not a tuple
		}
	}
	l.out = append(l.out, ']')
	return true
}

func (l *literal) dict(level int) bool {
	l.take("{")
	l.out = append(l.out, '{')
	known := make(map[string]bool)
	for n := 0; !l.take("}"); n++ {
		if n > 0 {
			if !l.take(", ") {
				return false
			}
			l.out = append(l.out, ',')
		}
		start := len(l.out)
		if !strings.HasPrefix(l.s, "'") || !l.text() || !l.take(": ") {
			return false
		}
		key := string(l.out[start:])
		if known[key] {
			return false
		}
		known[key] = true
		l.out = append(l.out, ':')
		if !l.value(level + 1) {
			return false
		}
	}
	l.out = append(l.out, '}')
	return true
}

// text reads a string. A backslash is only taken where it must have been written for the quote after it: what follows
// cannot follow the end of a string.
func (l *literal) text() bool {
	l.take("'")
	var b strings.Builder
	for {
		n := strings.IndexAny(l.s, `'\`)
		if n < 0 {
			return false
		}
		b.WriteString(l.s[:n])
		closes := l.s[n] == '\''
		l.s = l.s[n+1:]
		if closes {
			break
		}
		if !l.take("'") || l.s == "" || strings.IndexByte(",:)]}", l.s[0]) >= 0 {
			return false
		}
		b.WriteByte('\'')
	}
	s := b.String()
	if maybeCut(s) {
		return false
	}
	quoted, err := json.Marshal(s)
	l.out = append(l.out, quoted...)
	return err == nil
}

// maybeCut reports whether text ends as what was cut short ends, or replaces hidden text.
func maybeCut(s string) bool {
	return strings.HasSuffix(s, "...") || strings.HasSuffix(s, "…") || len(s) >= 3 && strings.Trim(s, "*") == ""
}

// word reads None, True, False or a number.
func (l *literal) word() bool {
	n := strings.IndexAny(l.s, ",:)]}")
	if n < 0 {
		n = len(l.s)
	}
	word := l.s[:n]
	l.s = l.s[n:]
	switch word {
	case "None":
		word = "null"
	case "True":
		word = "true"
	case "False":
		word = "false"
	default:
		if !isInteger(word) && !l.isFloat(word) {
			return false
		}
	}
	l.out = append(l.out, word...)
	return true
}

// isInteger reports whether s is an int exactly as Python writes it, which is also JSON.
func isInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > maxDigits || digits[0] == '0' && s != "0" {
		return false
	}
	return strings.Trim(digits, "0123456789") == ""
}

// isFloat reports whether s is a float exactly as Python writes it, which is also JSON.
func (l *literal) isFloat(s string) bool {
	const longest = len("-2.2250738585072014e-308")
	if len(s) > longest || strings.Trim(s, "0123456789.e+-") != "" {
		return false
	}
	if _, exponent, ok := strings.Cut(s, "e"); ok && len(exponent) > len("-99") {
		if l.far++; l.far > maxFar {
			return false
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && formatFloat(f) == s
}
