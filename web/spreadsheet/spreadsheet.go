// Package spreadsheet keeps spreadsheets from taking text for formulas.
package spreadsheet

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	formulas = "=+-@＝＋－＠" // that a formula begins with
	parting  = ";\t\r\n"  // where a spreadsheet may take another cell to begin; in quotes, a comma is text
)

// Text puts an apostrophe before what a spreadsheet would take for a formula (OWASP, CSV injection): at the start of text
// of strangers, and behind each character at which spreadsheets with other separators than a comma part cells.
func Text(s string) string {
	if !strings.ContainsAny(s, formulas) {
		return s
	}
	var b strings.Builder
	for s != "" {
		end := strings.IndexAny(s, parting) + 1
		if end == 0 {
			end = len(s)
		}
		cell := s[:end]
		if first, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(cell, passedOver)); strings.ContainsRune(formulas, first) {
			b.WriteByte('\'')
		}
		b.WriteString(cell)
		s = s[end:]
	}
	return b.String()
}

// passedOver reports whether spreadsheets may look for a formula behind r: space, quotes, and what cannot be seen, such as
// NUL, a byte order mark, or a zero-width space.
func passedOver(r rune) bool {
	return r == '"' || r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsGraphic(r)
}
