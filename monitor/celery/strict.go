package celery

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
)

// StrictJSON converts JSON as Python writes it into valid JSON: NaN and the infinities become null, lone
// surrogates and bytes that are not UTF-8 become U+FFFD, and control characters in strings are escaped. Nothing
// else changes. It fails if b is no JSON, or is nested more than 10,000 deep.
func StrictJSON(b []byte) (json.RawMessage, error) {
	text := valid(b)
	out := make([]byte, 0, len(text))
	for at := 0; at < len(text); {
		switch c := text[at]; c {
		case '"':
			n := quoted(text[at:])
			out = appendQuoted(out, text[at:at+n])
			at += n
		case 'N', 'I', '-':
			n := notFinite(text[at:])
			if n == 0 {
				out = append(out, c)
				at++
				continue
			}
			out = append(out, "null"...)
			at += n
		default:
			out = append(out, c)
			at++
		}
	}
	if !json.Valid(out) {
		return nil, errMalformed
	}
	return out, nil
}

// quoted is how long the string is that s begins with, both quotes included. One without an end is all of s.
func quoted(s string) int {
	for at := 1; at < len(s); at++ {
		switch s[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(s)
}

// notFinite is how long the word for no finite number is that s begins with, 0 if there is none.
func notFinite(s string) int {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if strings.HasPrefix(s, word) {
			return len(word)
		}
	}
	return 0
}

// appendQuoted appends a string with its quotes.
func appendQuoted(out []byte, s string) []byte {
	for at := 0; at < len(s); {
		switch c := s[at]; {
		case c == '\\':
			n := min(2, len(s)-at)
			if r, ok := surrogate(s[at:]); ok {
				n = 6
				low, paired := surrogate(s[at+6:])
				switch {
				case paired && utf16.DecodeRune(r, low) != '\uFFFD':
					n = 12
				default:
					out = append(out, `\ufffd`...)
					at += n
					continue
				}
			}
			out = append(out, s[at:at+n]...)
			at += n
		case c < ' ':
			out = append(out, `\u00`...)
			out = append(out, hexDigits[c>>4], hexDigits[c&15])
			at++
		default:
			out = append(out, c)
			at++
		}
	}
	return out
}

const hexDigits = "0123456789abcdef"

// surrogate reads half of a surrogate pair, written \uD8xx to \uDFxx.
func surrogate(s string) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil && utf16.IsSurrogate(rune(n))
}
