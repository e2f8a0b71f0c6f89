package query

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a query, as it is written and in its canonical form.
const (
	MaxLength = 2_048 // characters
	MaxTokens = 128   // fields, values, operators and parentheses
	MaxDepth  = 8     // parentheses and negations around a term
)

// Error says what is wrong with a query, and where.
type Error struct {
	Offset, Length int    // bytes of the wrong token in the query
	Message        string // a sentence
	Nearest        string // the nearest known name, empty if there is none
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Parse reads a query. Its error is an *Error.
func Parse(s string) (Query, error) {
	p := parser{in: s}
	var e Expr
	if p.fits() {
		e = p.or()
	}
	if !p.end() {
		p.fail(p.at, p.at+1, "there is no ( to this ); put text with parentheses in quotes")
	}
	if p.err != nil {
		return Query{}, p.err
	}
	q := New(e)
	if utf8.RuneCountInString(q.text) > MaxLength {
		p.fail(0, len(s), fmt.Sprintf("the query, spelled out, is longer than %d characters", MaxLength))
		return Query{}, p.err
	}
	return q, nil
}

// parser reads a query by recursive descent. It keeps the first error, and stops there.
type parser struct {
	in     string
	at     int
	tokens int
	last   int // where the last of them begins
	depth  int
	err    *Error
}

// fits reports whether the query is short enough, and text at all.
func (p *parser) fits() bool {
	n := 0
	for i, r := range p.in {
		if r == utf8.RuneError && !strings.HasPrefix(p.in[i:], string(utf8.RuneError)) {
			p.fail(i, i+1, "this byte is not UTF-8")
			return false
		}
		if n++; n > MaxLength {
			p.fail(i, len(p.in), fmt.Sprintf("a query has at most %d characters", MaxLength))
			return false
		}
	}
	return true
}

// fail keeps an error about the bytes from start to end, and ends the parse.
func (p *parser) fail(start, end int, message string) {
	if p.err == nil {
		p.err = &Error{Offset: start, Length: end - start, Message: message}
		p.at = len(p.in)
	}
}

// token counts one that begins at start and ends here.
func (p *parser) token(start int) {
	p.last = start
	if p.tokens++; p.tokens > MaxTokens {
		p.fail(start, p.at, fmt.Sprintf("a query has at most %d words", MaxTokens))
	}
}

// end skips space and reports whether nothing follows it that is to be read.
func (p *parser) end() bool {
	p.at = len(p.in) - len(strings.TrimLeftFunc(p.in[p.at:], unicode.IsSpace))
	return p.err != nil || p.at == len(p.in)
}

// begins reports whether the rest begins with s.
func (p *parser) begins(s string) bool { return strings.HasPrefix(p.in[p.at:], s) }

// next skips space and reports whether a word of the language, such as OR, follows.
func (p *parser) next(word string) bool {
	if p.end() || !p.begins(word) {
		return false
	}
	rest := p.in[p.at+len(word):]
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || unicode.IsSpace(r) || r == '(' || r == ')'
}

// skip counts a token of n bytes.
func (p *parser) skip(n int) {
	start := p.at
	p.at += n
	p.token(start)
}

// or reads alternatives: and { OR and }.
func (p *parser) or() Expr {
	some := Or{p.and()}
	for p.next("OR") {
		p.skip(len("OR"))
		some = append(some, p.and())
	}
	return some
}

// and reads conditions side by side, up to OR, a closing parenthesis or the end. Only the whole query may have
// none.
func (p *parser) and() Expr {
	var all And
	for !p.end() && !p.begins(")") && !p.next("OR") {
		if p.next("AND") && len(all) > 0 {
			p.skip(len("AND"))
			if p.end() || p.begins(")") {
				p.missing()
				break
			}
		}
		all = append(all, p.not())
	}
	if len(all) == 0 && (p.tokens > 0 || !p.end()) {
		p.missing()
	}
	return all
}

// missing says that a condition should follow the last token.
func (p *parser) missing() {
	if p.tokens == 0 {
		n := len(")")
		if p.next("OR") {
			n = len("OR")
		}
		p.fail(p.at, p.at+n, "a condition is missing before this")
		return
	}
	p.at = p.last + len(strings.TrimRightFunc(p.in[p.last:p.at], unicode.IsSpace))
	p.fail(p.last, p.at, "a condition is missing after this; put it in quotes to look for it")
}

// not reads a condition, or what it is not.
func (p *parser) not() Expr {
	start := p.at
	switch {
	case p.next("NOT"):
		p.skip(len("NOT"))
		if p.end() || p.begins(")") {
			p.missing()
		}
	case p.begins("-"):
		p.skip(len("-"))
		if at := p.at; p.end() || p.at > at || p.begins(")") {
			p.missing()
		}
	default:
		return p.group()
	}
	defer p.deeper(start)()
	if p.err != nil {
		return And{}
	}
	return Not{p.not()}
}

// deeper counts one level, until what it returns is called.
func (p *parser) deeper(start int) func() {
	if p.depth++; p.depth > MaxDepth {
		p.fail(start, start+1, fmt.Sprintf("conditions may be nested %d deep", MaxDepth))
	}
	return func() { p.depth-- }
}

// group reads a term, or a query in parentheses.
func (p *parser) group() Expr {
	if !p.begins("(") {
		return p.term()
	}
	start := p.at
	p.skip(len("("))
	defer p.deeper(start)()
	e := p.or()
	if p.err == nil && !p.begins(")") {
		p.fail(start, start+1, "there is no ) to this (")
	}
	if p.err == nil {
		p.skip(len(")"))
	}
	return e
}

// term reads a condition.
func (p *parser) term() Expr {
	start := p.at
	for _, word := range [...]string{"AND", "OR"} {
		if p.next(word) {
			p.fail(start, start+len(word), word+" stands between two conditions; put it in quotes to look for it")
			return And{}
		}
	}
	name := p.name()
	if name == "" {
		w := p.word(Any)
		p.token(start)
		return Term{Any, []Value{p.value(Any, w)}}
	}
	f, ok := FieldNamed(strings.ToLower(name))
	if !ok {
		p.unknown(start, name)
		return And{}
	}
	p.token(start)
	if p.begins("(") {
		p.fail(p.at, p.at+1, fmt.Sprintf("several values are written %s:a,b", f))
		return And{}
	}
	t := Term{Field: f}
	for {
		t.Values = append(t.Values, p.value(f, p.word(f)))
		p.token(start)
		if !p.begins(",") {
			return t
		}
		p.at++
	}
}

// unknown says that a field does not exist, and which one is near.
func (p *parser) unknown(start int, name string) {
	message := "there is no field " + name
	near := Nearest(strings.ToLower(name), fieldNames())
	if f, ok := FieldNamed(near); ok {
		near = f.String()
		message += "; the nearest is " + near
	} else {
		message += `; put text with a colon in quotes`
	}
	p.fail(start, start+len(name), message)
	p.err.Nearest = near
}

// name skips the name of a field with its colon and returns it, or nothing if no name follows.
func (p *parser) name() string {
	for i, r := range p.in[p.at:] {
		switch {
		case r == ':' && i > 0:
			name := p.in[p.at : p.at+i]
			p.at += i + 1
			return name
		case unicode.IsLetter(r) || i > 0 && (unicode.IsDigit(r) || strings.ContainsRune("_-.", r)):
		default:
			return ""
		}
	}
	return ""
}

// word is text as it stands in a query: in parts, some of which were in quotes.
type word struct {
	start, end int // bytes of the query
	parts      []part
}

type part struct {
	text   string
	quoted bool
}

// bare returns a word that has nothing in quotes, false if it has.
func (w word) bare() (string, bool) {
	switch {
	case len(w.parts) == 0:
		return "", true
	case len(w.parts) == 1 && !w.parts[0].quoted:
		return w.parts[0].text, true
	default:
		return "", false
	}
}

// text is the word as a value, quotes or not.
func (w word) text() string {
	var b strings.Builder
	for _, part := range w.parts {
		b.WriteString(part.text)
	}
	return b.String()
}

// word reads up to space, a parenthesis or, but for free text, a comma.
func (p *parser) word(f Field) word {
	ends := func(r rune) bool {
		return unicode.IsSpace(r) || r == '(' || r == ')' || r == '"' || r == ',' && f != Any
	}
	w := word{start: p.at}
	for p.err == nil && p.at < len(p.in) {
		if p.begins(`"`) {
			w.parts = append(w.parts, part{p.quoted(), true})
			continue
		}
		n := strings.IndexFunc(p.in[p.at:], ends)
		if n < 0 {
			n = len(p.in) - p.at
		}
		if n == 0 {
			break
		}
		w.parts = append(w.parts, part{text: p.in[p.at : p.at+n]})
		p.at += n
	}
	if w.end = p.at; p.begins("(") {
		p.fail(w.start, p.at+1, "put text with parentheses in quotes")
	}
	return w
}

// quoted reads text in quotes, in which \" and \\ stand for themselves.
func (p *parser) quoted() string {
	start := p.at
	var b strings.Builder
	for i := start + 1; i < len(p.in); i++ {
		switch c := p.in[i]; {
		case c == '"':
			p.at = i + 1
			return b.String()
		case c == '\\' && i+1 < len(p.in) && (p.in[i+1] == '"' || p.in[i+1] == '\\'):
			i++
			b.WriteByte(p.in[i])
		default:
			b.WriteByte(c)
		}
	}
	p.fail(start, len(p.in), `there is no closing " to this one`)
	return ""
}
