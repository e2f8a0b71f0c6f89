package celery

import (
	"errors"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// errMalformed is returned for text that is not JSON, not even as Python writes it.
var errMalformed = errors.New("malformed JSON")

// scanner walks one JSON text. It accepts what Python's encoder writes and JSON forbids: NaN, Infinity,
// -Infinity, lone surrogates, raw control characters in strings. Strings without escapes are shared
// with the text.
type scanner struct {
	text string
	at   int
}

// next skips white space and returns the byte at the scanner, 0 at the end.
func (s *scanner) next() byte {
	if s.at < len(s.text) && s.text[s.at] > ' ' {
		return s.text[s.at]
	}
	return s.skip()
}

// skip is next where there may be white space.
func (s *scanner) skip() byte {
	for s.at < len(s.text) {
		switch b := s.text[s.at]; b {
		case ' ', '\n', '\t', '\r':
			s.at++
		default:
			return b
		}
	}
	return 0
}

// pass moves past the byte at the scanner, and a blank, which Python writes after commas and colons.
func (s *scanner) pass() {
	if s.at++; s.at < len(s.text) && s.text[s.at] == ' ' {
		s.at++
	}
}

// accept moves past b, if it is next.
func (s *scanner) accept(b byte) bool {
	if s.next() != b {
		return false
	}
	s.at++
	return true
}

// end reports whether only white space is left.
func (s *scanner) end() bool { return s.next() == 0 && s.at == len(s.text) }

// A byte of each of eight.
const (
	eachLow   = 0x0101010101010101
	eachHigh  = 0x8080808080808080
	eachQuote = eachLow * '"'
	eachSlash = eachLow * '\\'
)

// str reads a string. It looks at eight bytes at a time: most strings are shorter than what it takes to call a search.
func (s *scanner) str() (string, error) {
	if !s.accept('"') {
		return "", errMalformed
	}
	text, at := s.text, s.at
	for ; at+8 <= len(text); at += 8 {
		eight := text[at : at+8]
		word := uint64(eight[0]) | uint64(eight[1])<<8 | uint64(eight[2])<<16 | uint64(eight[3])<<24 |
			uint64(eight[4])<<32 | uint64(eight[5])<<40 | uint64(eight[6])<<48 | uint64(eight[7])<<56
		// A byte is 0 where the text has the character. Subtracting 1 from each borrows from its high bit there, and above at
		// most: the lowest high bit that is set is right.
		quote, slash := word^eachQuote, word^eachSlash
		if found := ((quote-eachLow)&^quote | (slash-eachLow)&^slash) & eachHigh; found != 0 {
			at += bits.TrailingZeros64(found) / 8
			break
		}
	}
	for ; at < len(text); at++ {
		switch text[at] {
		case '"':
			from := s.at
			s.at = at + 1
			return text[from:at], nil
		case '\\':
			return s.escaped()
		}
	}
	return "", errMalformed
}

// escaped reads the rest of a string that has escapes.
func (s *scanner) escaped() (string, error) {
	var b strings.Builder
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		n := strings.IndexAny(rest, `"\`)
		if n < 0 {
			return "", errMalformed
		}
		b.WriteString(rest[:n])
		s.at += n + 1
		if rest[n] == '"' {
			return b.String(), nil
		}
		if err := s.escape(&b); err != nil {
			return "", err
		}
	}
	return "", errMalformed
}

// escape reads what follows a backslash.
func (s *scanner) escape(b *strings.Builder) error {
	if s.at >= len(s.text) {
		return errMalformed
	}
	c := s.text[s.at]
	s.at++
	switch c {
	case '"', '\\', '/':
		b.WriteByte(c)
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case 'n':
		b.WriteByte('\n')
	case 'r':
		b.WriteByte('\r')
	case 't':
		b.WriteByte('\t')
	case 'u':
		r, ok := s.hex4()
		if !ok {
			return errMalformed
		}
		if utf16.IsSurrogate(r) {
			r = s.pair(r)
		}
		b.WriteRune(r)
	default:
		return errMalformed
	}
	return nil
}

func (s *scanner) hex4() (rune, bool) {
	if len(s.text)-s.at < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(s.text[s.at:s.at+4], 16, 16)
	if err != nil {
		return 0, false
	}
	s.at += 4
	return rune(n), true
}

// pair completes a surrogate pair. A lone half, which Python can write, becomes U+FFFD.
func (s *scanner) pair(high rune) rune {
	start := s.at
	if strings.HasPrefix(s.text[s.at:], `\u`) {
		s.at += 2
		if low, ok := s.hex4(); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				return r
			}
		}
	}
	s.at = start
	return utf8.RuneError
}

// number reads the characters of a number, NaN and the infinities included.
func (s *scanner) number() (string, error) {
	s.next()
	start := s.at
	for s.at < len(s.text) {
		switch b := s.text[s.at]; {
		case b >= '0' && b <= '9', b == '-', b == '+', b == '.', b == 'e', b == 'E':
			s.at++
			continue
		case b == 'N' || b == 'I':
			for _, word := range []string{"NaN", "Infinity"} {
				if strings.HasPrefix(s.text[s.at:], word) {
					s.at += len(word)
					return s.text[start:s.at], nil
				}
			}
		}
		break
	}
	if s.at == start {
		return "", errMalformed
	}
	return s.text[start:s.at], nil
}

// raw moves past any value and returns its text. Brackets are matched by depth alone, without a stack, so
// nesting costs nothing.
func (s *scanner) raw() (string, error) {
	first := s.next()
	start, depth := s.at, 0
	for {
		switch s.next() {
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			depth--
			s.at++
		case ',', ':':
			if depth == 0 {
				return "", errMalformed
			}
			s.at++
		case '"':
			if _, err := s.str(); err != nil {
				return "", err
			}
		case 't', 'f', 'n':
			if !s.word() {
				return "", errMalformed
			}
		default:
			if _, err := s.number(); err != nil {
				return "", err
			}
		}
		if depth == 0 {
			return s.text[start:s.at], nil
		}
		if depth < 0 || first != '{' && first != '[' {
			return "", errMalformed
		}
	}
}

// word moves past true, false or null.
func (s *scanner) word() bool {
	for _, w := range []string{"true", "false", "null"} {
		if strings.HasPrefix(s.text[s.at:], w) {
			s.at += len(w)
			return true
		}
	}
	return false
}
