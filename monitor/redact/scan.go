package redact

import (
	"strings"
)

const (
	// mask stands where a secret was, as Celery and Flower write it.
	mask = "********"
	// maxKey is the length of a key in bytes, beyond which only its end is compared.
	maxKey = 128
)

// A scanner finds the values of keys in text: in Python's repr, in Celery's saferepr, which escapes quotes but no backslashes,
// in JSON, in any of these within a string of another, and in plain text such as password=x. Text may be cut at any place
// and be hostile: where it is not clear how far a value goes, more is masked rather than less.

// keyBefore returns the key that ends before the separator at s[at], and the quotes around it.
func keyBefore(s string, at int) (key string, q quote, start int) {
	end := at
	for end > 0 && (s[end-1] == ' ' || s[end-1] == '\t') {
		end--
	}
	if end == 0 {
		return "", quote{}, 0
	}
	if c := s[end-1]; c == '\'' || c == '"' {
		q = quote{c, backslashes(s, end-1)}
		end -= 1 + q.escapes
		for from := end - 1; from >= 0 && end-from <= maxKey; from-- {
			if s[from] == c && backslashes(s, from) == q.escapes {
				return s[from+1 : end], q, from - q.escapes
			}
		}
		return s[max(0, end-maxKey):end], q, max(0, end-maxKey)
	}
	start = end
	for start > 0 && end-start < maxKey && isWord(s[start-1]) {
		start--
	}
	return s[start:end], quote{}, start
}

// quote is how a string begins and ends: a character after a number of backslashes. The zero value is none.
type quote struct {
	char    byte
	escapes int
}

// around returns text between quotes.
func (q quote) around(text string) string {
	if q.char == 0 {
		return text
	}
	mark := strings.Repeat(`\`, q.escapes) + string(q.char)
	return mark + text + mark
}

// backslashes counts those directly before s[at].
func backslashes(s string, at int) int {
	n := 0
	for n < at && s[at-n-1] == '\\' {
		n++
	}
	return n
}

func isWord(c byte) bool {
	return c == '_' || c == '.' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// opening returns the quotes of the string that begins at s[at], after letters as in b” and after backslashes, and where its
// content begins, 0 if no string begins there.
func opening(s string, at int) (q quote, content int) {
	i := at
	for i < len(s) && i < at+2 && strings.IndexByte("bBuUrRfF", s[i]) >= 0 {
		i++
	}
	first := i
	for i < len(s) && s[i] == '\\' {
		i++
	}
	if i < len(s) && (s[i] == '\'' || s[i] == '"') {
		return quote{s[i], i - first}, i + 1
	}
	return quote{}, 0
}

// stringEnd returns where the string ends whose content begins at s[at]: after its quote, before the quote of a string around
// it, or at the end of s. It is doubtful if it could have ended earlier: saferepr does not escape backslashes.
func stringEnd(s string, at int, q quote) (end int, doubtful bool) {
	for i := at; ; i++ {
		n := strings.IndexByte(s[i:], q.char)
		if n < 0 {
			return len(s), doubtful
		}
		i += n
		escapes := min(backslashes(s, i), i-at)
		switch {
		case escapes == q.escapes:
			return i + 1, doubtful
		case escapes < q.escapes:
			return i - escapes, doubtful
		case ends(s, i+1):
			doubtful = true
		}
	}
}

// stringsEnd is stringEnd for one or more strings in a row, as Python's sources and pprint have them, and for one in triple quotes.
func stringsEnd(s string, at int, q quote) (end int) {
	if triple := strings.Repeat(string(q.char), 3); q.escapes == 0 && strings.HasPrefix(s[at-1:], triple) {
		n := strings.Index(s[at+2:], triple)
		if n < 0 {
			return len(s)
		}
		return at + 2 + n + 3
	}
	for {
		end, _ = stringEnd(s, at, q)
		next := end
		for next < len(s) && strings.IndexByte(" \t\r\n", s[next]) >= 0 {
			next++
		}
		another, content := opening(s, next)
		if end >= len(s) || another != q {
			return end
		}
		at = content
	}
}

// ends reports whether s[at] can follow the end of a string.
func ends(s string, at int) bool {
	return at >= len(s) || strings.IndexByte(",:;)]}> \t\r\n\\'\"", s[at]) >= 0
}

// containerEnd returns where the list, dict, tuple or call ends whose bracket is s[at].
func containerEnd(s string, at int) int {
	depth := 0
	for i := at; i < len(s); i++ {
		switch s[i] {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			if depth--; depth == 0 {
				return i + 1
			}
		case '\'', '"':
			end, doubtful := stringEnd(s, i+1, quote{s[i], backslashes(s, i)})
			if doubtful { // brackets may be within strings or not
				return len(s)
			}
			i = max(end-1, i)
		}
	}
	return len(s)
}

// angleEnd returns where the description of an object ends whose < is s[at].
func angleEnd(s string, at int) int {
	depth := 0
	for i := at; i < len(s); i++ {
		switch s[i] {
		case '<':
			depth++
		case '>':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// bareEnd returns where a value without quotes ends: at one of stops, or at the quote of a string around it.
func bareEnd(s string, at int, stops string) int {
	for i := at; i < len(s); i++ {
		switch c := s[i]; {
		case strings.IndexByte(stops, c) >= 0:
			return i
		case (c == '[' || c == '{' || c == '(' || c == '<') && i > at:
			if c == '<' {
				i = angleEnd(s, i) - 1
			} else {
				i = containerEnd(s, i) - 1
			}
		case (c == '\'' || c == '"') && ends(s, i+1) && i > at:
			return i - backslashes(s, i)
		}
	}
	return len(s)
}

// Where values without quotes end, by what comes before them.
const (
	stopsQuoted = ",;)]}\n"         // 'key': or "key":
	stopsEqual  = ",;&)]}> \t\r\n"  // key=
	stopsColon  = ",;)]}>\r\n"      // key:
	stopsLine   = "\r\n"            // all of a line
	stopsWord   = " \t\r\n"         // --key
	stopsAtEnd  = ""                // all that follows
	separators  = ":=,"             // between key and value, or the two of a pair
	maxPrefix   = len("\\\\\\\\b'") // before a string
)

// valueAt returns where the value that begins at s[at] ends, and the quotes to write its mask in. empty is whether the value
// reveals nothing.
func valueAt(s string, at int, key quote, stops string) (end int, q quote, empty bool) {
	if at >= len(s) {
		return at, key, true
	}
	if q, content := opening(s, at); q.char != 0 {
		end := stringsEnd(s, content, q)
		inner := strings.TrimRight(s[content:end], `\'"`)
		return end, q, inner == "" && end < len(s) || inner == mask
	}
	switch s[at] {
	case '[', '{', '(':
		end = containerEnd(s, at)
		return end, key, end-at == 2
	case '<':
		return angleEnd(s, at), key, false
	}
	end = bareEnd(s, at, stops)
	switch strings.TrimRight(s[at:end], " \t") {
	case "", "None", "True", "False", "null", "true", "false", mask:
		empty = true
	}
	return end, key, empty
}

// elementAt returns where the n-th element, from 0, of the tuple or list s begins and ends; it ends at the end of s if it is not
// clear where. It is false if there are fewer.
func elementAt(s string, n int) (start, end int, ok bool) {
	i := strings.IndexAny(s, "([")
	if i < 0 {
		return 0, len(s), s != ""
	}
	i++
	for k := 0; ; k++ {
		for i < len(s) && (s[i] == ' ' || s[i] == ',') {
			i++
		}
		if i >= len(s) || s[i] == ')' || s[i] == ']' {
			return 0, 0, false
		}
		start = i
		if q, content := opening(s, i); q.char != 0 {
			var doubtful bool
			if i, doubtful = stringEnd(s, content, q); doubtful {
				return start, len(s), true
			}
		} else {
			i, _, _ = valueAt(s, i, quote{}, ",)]")
		}
		if k == n || i >= len(s) && k < n && strings.IndexByte("([{", s[start]) >= 0 {
			return start, i, true
		}
	}
}
