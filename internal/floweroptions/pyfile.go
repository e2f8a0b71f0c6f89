package floweroptions

import (
	"fmt"
	"slices"
	"strings"
)

// assignment is one of name = value in a Python file.
type assignment struct {
	name    string
	line    int
	value   any    // nil, bool, int64, float64, string, []any, map[string]any
	refused string // why the value is not known, else empty
	used    bool   // another line refers to it
}

// pyFile reads assignments of literals from a Python file, which it does not execute.
type pyFile struct {
	text string
	env  map[string]string

	at   int
	line int // from 1
	list []assignment
}

// read returns the assignments, the last one of each name. functions reports whether a name is that of an option whose
// value is a function. Its error names a line that may set options in a way that is not read.
func (f *pyFile) read(functions func(name string) bool) ([]assignment, error) {
	f.text = strings.TrimPrefix(strings.ReplaceAll(f.text, "\r\n", "\n"), "\ufeff")
	f.line = 1
	for f.at < len(f.text) {
		if err := f.statement(functions); err != nil {
			return nil, err
		}
	}
	return f.list, nil
}

func (f *pyFile) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", line, fmt.Sprintf(format, args...))
}

// onlyLiterals says what is read.
const onlyLiterals = "only lines of the form name = literal are read, and os.environ.get(name, default)"

// statement reads a logical line.
func (f *pyFile) statement(functions func(name string) bool) error {
	start := f.at
	f.blanks()
	line := f.line
	switch {
	case f.at == len(f.text):
		return nil
	case f.text[f.at] == '\n' || f.text[f.at] == '#' || f.text[f.at] == ';':
		f.endOfLine()
		return nil
	case f.at > start:
		return f.errorf(line, "is indented: %s", onlyLiterals)
	case strings.ContainsRune(`"'`, rune(f.text[f.at])): // a comment as a string
		v := f.value(0)
		if v.refused != "" {
			return f.errorf(line, "%s", v.refused)
		}
		f.skipLine()
		return nil
	}
	name := f.word()
	switch name {
	case "import", "from":
		f.skipLine() // whoever uses what it imports is refused
		return nil
	case "pass":
		f.skipLine()
		return nil
	case "def":
		f.blanks()
		name = f.word()
		f.skipBlock()
		if functions(name) {
			f.assign(assignment{name: name, line: line})
		}
		return nil
	}
	if name == "" || reserved(name) {
		return f.errorf(line, "%s is not read: %s", firstWords(f.text[start:]), onlyLiterals)
	}
	f.blanks()
	if f.at < len(f.text) && f.text[f.at] == ':' { // an annotation
		for f.at < len(f.text) && !strings.ContainsRune("=\n", rune(f.text[f.at])) {
			f.at++
		}
	}
	if !strings.HasPrefix(f.text[f.at:], "=") || strings.HasPrefix(f.text[f.at:], "==") {
		return f.errorf(line, "%s is not read: %s", firstWords(f.text[start:]), onlyLiterals)
	}
	f.at++
	if functions(name) {
		f.skipLine()
		f.assign(assignment{name: name, line: line})
		return nil
	}
	from, first := f.at, f.line
	v := f.value(0)
	if v.refused == "" && !f.ended() {
		v = result{refused: "must be a literal, without operators or calls: " + onlyLiterals}
	}
	f.at, f.line = from, first // what is in brackets belongs to the line, however much of it was read
	f.skipLine()
	f.assign(assignment{name: name, line: line, value: v.value, refused: v.refused})
	return nil
}

// assign keeps the last assignment of a name.
func (f *pyFile) assign(a assignment) {
	f.list = slices.DeleteFunc(f.list, func(have assignment) bool { return have.name == a.name })
	f.list = append(f.list, a)
}

// reserved reports whether a word begins a statement that may set options, or cannot be a name.
func reserved(word string) bool {
	return slices.Contains(strings.Fields("and as assert async await break class continue del elif else except finally for "+
		"global if in is lambda nonlocal not or raise return try while with yield True False None"), word)
}

// firstWords is the beginning of a line.
func firstWords(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return strings.TrimSpace(strings.ToValidUTF8(s, ""))
}

// blanks skips blanks within a line, and lines that are continued by a backslash.
func (f *pyFile) blanks() {
	for f.at < len(f.text) {
		switch {
		case strings.ContainsRune(" \t\f", rune(f.text[f.at])):
			f.at++
		case strings.HasPrefix(f.text[f.at:], "\\\n"):
			f.at += 2
			f.line++
		default:
			return
		}
	}
}

// space skips blanks and, within brackets, comments and ends of lines.
func (f *pyFile) space(depth int) {
	for f.blanks(); depth > 0 && f.at < len(f.text); f.blanks() {
		switch f.text[f.at] {
		case '\n':
			f.at++
			f.line++
		case '#':
			for f.at < len(f.text) && f.text[f.at] != '\n' {
				f.at++
			}
		default:
			return
		}
	}
}

// ended reports whether nothing but a comment is left of a line.
func (f *pyFile) ended() bool {
	f.blanks()
	return f.at == len(f.text) || strings.ContainsRune("\n#;", rune(f.text[f.at]))
}

// endOfLine skips a comment or a semicolon, and the end of the line.
func (f *pyFile) endOfLine() {
	if f.text[f.at] == ';' {
		f.at++
		f.blanks()
		return
	}
	for f.at < len(f.text) && f.text[f.at] != '\n' {
		f.at++
	}
	if f.at < len(f.text) {
		f.at++
		f.line++
	}
}

// skipLine skips the rest of a logical line: what is in brackets and strings belongs to it.
func (f *pyFile) skipLine() {
	depth := 0
	for f.at < len(f.text) {
		f.space(depth)
		if f.at == len(f.text) {
			return
		}
		switch c := f.text[f.at]; {
		case c == '\n' || c == '#' || c == ';' && depth == 0:
			f.endOfLine()
			return
		case c == '"' || c == '\'':
			f.text0()
		default:
			if strings.IndexByte("([{", c) >= 0 {
				depth++
			}
			if strings.IndexByte(")]}", c) >= 0 {
				depth = max(0, depth-1)
			}
			f.at++
		}
	}
}

// skipBlock skips a line and the lines below it that are indented.
func (f *pyFile) skipBlock() {
	f.skipLine()
	for f.at < len(f.text) {
		start, line := f.at, f.line
		f.blanks()
		if f.at == start && f.at < len(f.text) && !strings.ContainsRune("\n#", rune(f.text[f.at])) {
			f.line = line
			return
		}
		f.skipLine()
	}
}

// word reads a name, empty if none is there.
func (f *pyFile) word() string {
	start := f.at
	for f.at < len(f.text) {
		c := f.text[f.at]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
		if !letter && (f.at == start || c < '0' || c > '9') {
			break
		}
		f.at++
	}
	return f.text[start:f.at]
}
