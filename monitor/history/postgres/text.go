package postgres

import (
	"strings"
	"unicode/utf8"
)

// A text of PostgreSQL holds no NUL and is UTF-8. Texts of Celery may be anything, so bytes that PostgreSQL refuses are stored as
// runes from escapes on, of the last private plane, and so are the bytes of those runes themselves. Other texts, nearly all,
// are stored as they are.
const (
	escapes      = '\U0010fe00'
	escapeLength = 4
	escapeLead   = 0xf4 // first byte of an escape
)

func isEscape(r rune) bool { return r >= escapes && r < escapes+256 }

// encodeText returns a text as it is stored.
func encodeText(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, escapeLead) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != 0 && !isEscape(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		for end := i + n; i < end; i++ {
			b.WriteRune(escapes + rune(s[i]))
		}
	}
	return b.String()
}

// decodeText returns the text that encodeText has encoded.
func decodeText(s string) string {
	if strings.IndexByte(s, escapeLead) < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if r, _ := utf8.DecodeRuneInString(s[i:]); isEscape(r) {
			b = append(b, byte(r-escapes))
			i += escapeLength
			continue
		}
		b = append(b, s[i])
		i++
	}
	return string(b)
}

// encodeTexts returns texts as they are stored.
func encodeTexts(list []string) []string {
	encoded := make([]string, len(list))
	for i, s := range list {
		encoded[i] = encodeText(s)
	}
	return encoded
}
