package redact

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// cards redacts the numbers of payment cards: 13 to 19 digits, with single blanks or dashes between them, whose last one
// checks (ISO/IEC 7812-1).
func cards(s string) (string, uint64) {
	var out strings.Builder
	done, n := 0, uint64(0)
	for at := 0; at < len(s); {
		if s[at] < '0' || s[at] > '9' {
			at++
			continue
		}
		end, digits := at, make([]byte, 0, 19)
		for i := at; i < len(s); i++ {
			c := s[i]
			if c >= '0' && c <= '9' {
				digits, end = append(digits, c-'0'), i+1
			} else if c != ' ' && c != '-' || i > end {
				break
			}
		}
		if len(digits) >= 13 && len(digits) <= 19 && luhn(digits) {
			out.WriteString(s[done:at])
			out.WriteString(mask)
			done = end
			n++
		}
		at = end
	}
	if n == 0 {
		return s, 0
	}
	out.WriteString(s[done:])
	return out.String(), n
}

func luhn(digits []byte) bool {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i])
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0 && sum > 0
}

// unescape replaces escapes of JSON and Python such as \u0070 and \x70 by their characters.
func unescape(key string) string {
	var out strings.Builder
	for i := 0; i < len(key); i++ {
		if key[i] == '\\' && i+1 < len(key) {
			length := map[byte]int{'u': 4, 'x': 2, 'U': 8}[key[i+1]]
			if end := i + 2 + length; length > 0 && end <= len(key) {
				if n, err := strconv.ParseUint(key[i+2:end], 16, 32); err == nil && n <= utf8.MaxRune {
					out.WriteRune(rune(n))
					i = end - 1
					continue
				}
			}
		}
		out.WriteByte(key[i])
	}
	return out.String()
}

// betweenURLs is what separates two URLs of a list.
func betweenURLs() *regexp.Regexp {
	return regexp.MustCompile(`[;,|'"()\[\]{}<>]+[A-Za-z][A-Za-z0-9+.\-]*://`)
}
