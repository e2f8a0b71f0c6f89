package spreadsheet_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/umbelhq/umbel/web/spreadsheet"
)

func TestTextIsNoFormula(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`=HYPERLINK("http://evil","x")`: `'=HYPERLINK("http://evil","x")`,
		"+1+1":                          "'+1+1",
		"-2+3":                          "'-2+3",
		"@SUM(1)":                       "'@SUM(1)",
		"＝1+1":                          "'＝1+1",
		"\t=1":                          "\t'=1",
		"\r=1":                          "\r'=1",
		"\n=1":                          "\n'=1",
		";=1":                           ";'=1",
		"a; \"=1":                       "a;' \"=1",
		"a\n-b":                         "a\n'-b",
		"\x00=1":                        "'\x00=1",
		"\uFEFF=1":                      "'\uFEFF=1",
		"\u200B\u200F=1":                "'\u200B\u200F=1",
		"\u00A0\u2028\u00AD@x":          "'\u00A0\u2028\u00AD@x",
		`" =1`:                          `'" =1`,
		"\uFFFD=1":                      "'\uFFFD=1",
		"(1, '=1')":                     "(1, '=1')",
		"a\"b,c\nd; e":                  "a\"b,c\nd; e",
		"\u200Ba=1":                     "\u200Ba=1",
	} {
		if got := spreadsheet.Text(text); got != want {
			t.Errorf("text %q becomes %q, want %q", text, got, want)
		}
	}
}

func FuzzTextIsNoFormula(f *testing.F) {
	f.Add("\uFEFF;\x00 =1\n\u200B\"+1;-")
	f.Fuzz(func(t *testing.T, text string) {
		got := spreadsheet.Text(text)
		for cell := range strings.FieldsFuncSeq(got, func(r rune) bool { return strings.ContainsRune(";\t\r\n", r) }) {
			seen := strings.TrimLeftFunc(cell, func(r rune) bool { return r == '"' || !unicode.IsPrint(r) || unicode.IsSpace(r) })
			if seen != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(seen)[0]) {
				t.Errorf("text %q becomes %q, which has the formula %q", text, got, seen)
			}
		}
		if got, want := strings.ReplaceAll(got, "'", ""), strings.ReplaceAll(text, "'", ""); got != want {
			t.Errorf("text without apostrophes = %q, want %q", got, want)
		}
	})
}
