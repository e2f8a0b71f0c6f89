// Package truncate shortens text without splitting a character.
package truncate

import (
	"strings"
	"unicode/utf8"
)

// Bytes returns the longest prefix of s that has at most n bytes and ends at a character's edge.
func Bytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Text returns s as valid UTF-8, invalid bytes replaced by U+FFFD, cut to n bytes with an ellipsis if it is longer.
func Text(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return ellipsis(s, Bytes(s, n))
}

// Chars is Text for a number of characters instead of bytes.
func Chars(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for i := range s {
		if n--; n < 0 {
			return ellipsis(s, s[:i])
		}
	}
	return s
}

func ellipsis(s, head string) string {
	if len(head) < len(s) {
		return head + "…"
	}
	return s
}
