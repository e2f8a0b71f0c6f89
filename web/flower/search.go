package flower

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
)

// Bounds of a search, which are Flower's.
const (
	maxSearch      = 2048 // characters
	maxSearchWords = 128  // words and parentheses
	maxSearchDepth = 5    // parentheses in parentheses
	minSubstring   = 3    // characters of a word that is looked for in texts
)

// expression is a parsed search: nil for everything, else term, and or or.
type expression any

type (
	and []expression
	or  []expression
	// term has the field that it names, in lower case, empty if it is looked for in all fields.
	term struct{ field, value string }
)

// searchError is what is wrong with a search, in Flower's words.
type searchError struct {
	text string
	at   int // in characters, -1 if it is nowhere in particular
}

func (e *searchError) Error() string {
	if e.at < 0 {
		return e.text + "."
	}
	return fmt.Sprintf("%s at position %d.", e.text, e.at)
}

// Kinds of words.
const (
	wordTerm  = "term"
	wordAnd   = "AND"
	wordOr    = "OR"
	wordOpen  = "("
	wordClose = ")"
	wordEnd   = "end"
)

type word struct {
	kind, text string
	at         int
}

// parseSearch parses a search. The error is a *searchError.
func parseSearch(text string) (expression, error) {
	in := []rune(strings.TrimFunc(text, isSpace))
	if len(in) > maxSearch {
		return nil, &searchError{fmt.Sprintf("Query exceeds %d characters", maxSearch), -1}
	}
	words, err := splitSearch(in)
	if err != nil {
		return nil, err
	}
	p := &searchParser{words: words}
	if p.next().kind == wordEnd {
		return nil, nil //nolint:nilnil // everything
	}
	e, err := p.or(0)
	if err == nil && p.next().kind != wordEnd {
		err = &searchError{"Unexpected '" + p.next().text + "'", p.next().at}
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// searchOf parses the search of a request. Those who may not see payloads cannot ask for them. The error is a *searchError.
func searchOf(text string, payload bool) (expression, error) {
	e, err := parseSearch(text)
	if err == nil && !payload && readsPayload(e) {
		return nil, &searchError{"You may not search by args, kwargs and result", -1}
	}
	return e, err
}

func readsPayload(e expression) bool {
	switch e := e.(type) {
	case and:
		return slices.ContainsFunc(e, readsPayload)
	case or:
		return slices.ContainsFunc(e, readsPayload)
	case term:
		return e.field == "args" || e.field == "kwargs" || e.field == "result"
	}
	return false
}

// isSpace is Python's isspace.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// splitSearch returns the words of a search, with one for its end.
func splitSearch(in []rune) ([]word, error) {
	var words []word
	for i := 0; i < len(in); {
		w := word{at: i}
		var err error
		switch {
		case isSpace(in[i]):
			i++
			continue
		case in[i] == '(' || in[i] == ')':
			w.kind, w.text = string(in[i]), string(in[i])
			i++
		default:
			if i, err = w.read(in, i); err != nil {
				return nil, err
			}
		}
		if words = append(words, w); len(words) > maxSearchWords {
			return nil, &searchError{fmt.Sprintf("Query exceeds %d tokens", maxSearchWords), -1}
		}
	}
	return append(words, word{kind: wordEnd, at: len(in)}), nil
}

// read reads a word that is no parenthesis, and returns where it ends.
func (w *word) read(in []rune, i int) (int, error) {
	var b strings.Builder
	quoted, inQuotes := false, false
	for ; i < len(in); i++ {
		switch r := in[i]; {
		case r == '\\' && i+1 < len(in) && (in[i+1] == '"' || in[i+1] == '\\'):
			i++
			b.WriteRune(in[i])
			continue
		case r == '"':
			quoted, inQuotes = true, !inQuotes
			continue
		case !inQuotes && (isSpace(r) || r == '(' || r == ')'):
		default:
			b.WriteRune(r)
			continue
		}
		break
	}
	w.kind, w.text = wordTerm, b.String()
	switch {
	case inQuotes:
		return i, &searchError{"Unterminated quoted phrase", w.at}
	case w.text == "":
		return i, &searchError{"Empty search term", w.at}
	case quoted:
	case w.text == wordAnd || w.text == wordOr:
		w.kind = w.text
	case w.text == "NOT":
		return i, &searchError{"NOT is not supported", w.at}
	}
	return i, nil
}

// searchParser reads words.
type searchParser struct {
	words []word
	at    int
}

func (p *searchParser) next() word { return p.words[p.at] }

// or reads alternatives, within so many parentheses.
func (p *searchParser) or(depth int) (expression, error) {
	first, err := p.and(depth)
	if err != nil {
		return nil, err
	}
	list := or{first}
	for p.next().kind == wordOr {
		if err := p.operator(); err != nil {
			return nil, err
		}
		e, err := p.and(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return combine(list, func(e expression) (or, bool) { o, ok := e.(or); return o, ok }), nil
}

// and reads what must all hold.
func (p *searchParser) and(depth int) (expression, error) {
	first, err := p.primary(depth)
	if err != nil {
		return nil, err
	}
	list := and{first}
	for !slices.Contains([]string{wordEnd, wordClose, wordOr}, p.next().kind) {
		if p.next().kind == wordAnd {
			if err := p.operator(); err != nil {
				return nil, err
			}
		}
		e, err := p.primary(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return combine(list, func(e expression) (and, bool) { a, ok := e.(and); return a, ok }), nil
}

// operator reads AND or OR.
func (p *searchParser) operator() error {
	operator := p.next()
	p.at++
	if slices.Contains([]string{wordEnd, wordClose, wordAnd, wordOr}, p.next().kind) {
		return &searchError{operator.text + " must be followed by a search term", operator.at}
	}
	return nil
}

// primary reads a term or a group in parentheses.
func (p *searchParser) primary(depth int) (expression, error) {
	w := p.next()
	switch w.kind {
	case wordTerm:
		p.at++
		return newTerm(w)
	case wordOpen:
	default:
		return nil, &searchError{"Expected a search term", w.at}
	}
	if depth >= maxSearchDepth {
		return nil, &searchError{fmt.Sprintf("Query nesting exceeds %d levels", maxSearchDepth), w.at}
	}
	p.at++
	if p.next().kind == wordClose {
		return nil, &searchError{"Empty group", w.at}
	}
	e, err := p.or(depth + 1)
	if err != nil {
		return nil, err
	}
	if p.next().kind != wordClose {
		return nil, &searchError{"Missing closing parenthesis", w.at}
	}
	p.at++
	return e, nil
}

// searchFields are the fields that a term can name.
func searchFields() []string { return []string{"name", "state", "worker", "args", "kwargs", "result"} }

func newTerm(w word) (expression, error) {
	t := term{value: w.text}
	if name, value, ok := strings.Cut(w.text, ":"); ok && slices.Contains(searchFields(), fold(name)) {
		t = term{fold(name), value}
	}
	switch {
	case t.field == "" && strings.HasPrefix(t.value, "-"):
		return nil, &searchError{"Negation with '-' is not supported", w.at}
	case t.value == "":
		return nil, &searchError{"Search qualifier requires a value", w.at}
	case !t.exact() && len([]rune(strings.TrimFunc(t.value, isSpace))) < minSubstring:
		return nil, &searchError{fmt.Sprintf("Substring search terms must contain at least %d characters", minSubstring), w.at}
	}
	return t, nil
}

// exact reports whether the term compares whole values.
func (t term) exact() bool {
	return t.field == "state" || t.field == "kwargs" && strings.Contains(t.value, "=")
}

// combine returns a list without lists of its own kind in it and without repetitions, or its only element.
func combine[L ~[]expression](list L, nested func(expression) (L, bool)) expression {
	var flat L
	for _, e := range list {
		parts, ok := nested(e)
		if !ok {
			parts = L{e}
		}
		for _, part := range parts {
			if !slices.ContainsFunc(flat, func(other expression) bool { return same(other, part) }) {
				flat = append(flat, part)
			}
		}
	}
	if len(flat) == 1 {
		return flat[0]
	}
	return flat
}

// same reports whether two expressions are equal.
func same(a, b expression) bool {
	switch a := a.(type) {
	case and:
		b, ok := b.(and)
		return ok && slices.EqualFunc(a, b, same)
	case or:
		b, ok := b.(or)
		return ok && slices.EqualFunc(a, b, same)
	}
	t, ok := b.(term)
	return ok && a == t
}

// fold returns a text to compare without regard to case.
func fold(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 0x80 {
			return cases.Fold().String(s)
		}
	}
	return strings.ToLower(s)
}
