// Package query reads and writes the URL parameters that select tasks, for the JSON API, the pages
// and the names of live topics alike. It knows nothing of HTTP and never looks at a task.
package query

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/umbelhq/umbel/state"
)

// Bounds of what a query may hold.
const (
	DefaultLimit = 50
	MaxLimit     = 500
	MaxText      = 256   // characters of q
	MaxValues    = 100   // values of one repeatable parameter
	maxValue     = 1_024 // bytes of one name, worker or root
	maxState     = 64    // bytes of one state
)

// The parameters of a query, in the order in which they are checked.
const (
	paramState  = "state"
	paramName   = "name"
	paramWorker = "worker"
	paramText   = "q"
	paramRoot   = "root"
	paramLimit  = "limit"
	paramCursor = "cursor"
)

// Error says which parameter is wrong and why.
type Error struct {
	Param   string // name of the parameter as the client sent it
	Message string // what is wrong, to be read after the name: "must be …"
}

// Error returns the name and the message in one sentence.
func (e *Error) Error() string { return e.Param + " " + e.Message }

// Tasks selects a page of the list of tasks. Parse makes it; the zero value selects the newest
// tasks. Its slices are sorted, hold no value twice and must not be modified.
type Tasks struct {
	States  []state.State
	Names   []string // exact task names
	Workers []string // exact node names
	Text    string
	Root    string          // exact root id
	Limit   int             // 1 to MaxLimit; 0 means DefaultLimit
	From    *state.Position // the page continues after this row; nil means the newest page
	Newer   bool            // the page lies on the newer side of From
}

// Parse reads a query from URL parameters. Empty values count as absent, as forms send them. On the
// first wrong or unknown parameter it returns an *Error, beside a query of all that was right.
func Parse(v url.Values) (Tasks, error) {
	t, err := ParseLax(v)
	if err != nil {
		return t, err
	}
	var unknown []string
	for name := range v {
		if !slices.Contains(params(), name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return t, &Error{
			Param:   slices.Min(unknown),
			Message: "is not a parameter of this list; these are: " + strings.Join(params(), ", "),
		}
	}
	return t, nil
}

// ParseLax is Parse for pages that have parameters of their own: unknown ones are ignored.
func ParseLax(v url.Values) (Tasks, error) {
	p := parser{values: v}
	t := Tasks{
		States:  p.states(),
		Names:   p.list(paramName),
		Workers: p.list(paramWorker),
		Text:    p.text(),
		Root:    p.bounded(paramRoot, p.one(paramRoot)),
		Limit:   p.limit(),
	}
	t.From, t.Newer = p.cursor()
	if p.err != nil {
		return t, p.err
	}
	return t, nil
}

func params() []string {
	return []string{paramState, paramName, paramWorker, paramText, paramRoot, paramLimit, paramCursor}
}

// parser reads parameters and keeps the first error; what is wrong is left out of the query.
type parser struct {
	values url.Values
	err    *Error
}

func (p *parser) fail(param, message string) {
	if p.err == nil {
		p.err = &Error{Param: param, Message: message}
	}
}

// one returns the value of a parameter that may be given once.
func (p *parser) one(param string) string {
	var found string
	for _, v := range p.values[param] {
		if v == "" {
			continue
		}
		if found != "" {
			p.fail(param, "may be given only once")
			return ""
		}
		found = v
	}
	return found
}

// bounded returns v, or nothing if it is too long.
func (p *parser) bounded(param, v string) string {
	if len(v) > maxValue {
		p.fail(param, "must be at most "+strconv.Itoa(maxValue)+" bytes long")
		return ""
	}
	return v
}

// list returns the values of a repeatable parameter, sorted, each once.
func (p *parser) list(param string) []string {
	var list []string
	for _, v := range p.values[param] {
		if v = p.bounded(param, v); v != "" {
			list = append(list, v)
		}
	}
	return distinct(p, param, list)
}

// states returns the states, which may be repeated, separated by commas, or both.
func (p *parser) states() []state.State {
	var list []state.State
	for _, v := range p.values[paramState] {
		for s := range strings.SplitSeq(v, ",") {
			if s = strings.TrimSpace(s); s == "" {
				continue
			}
			if !validState(s) {
				p.fail(paramState, "must be made of 1 to 64 letters, digits, _ and -, such as SUCCESS")
				continue
			}
			list = append(list, state.State(strings.ToUpper(s)))
		}
	}
	return distinct(p, paramState, list)
}

// distinct sorts list and drops what it holds twice.
func distinct[S ~string](p *parser, param string, list []S) []S {
	slices.Sort(list)
	list = slices.Compact(list)
	if len(list) > MaxValues {
		p.fail(param, "may be given at most "+strconv.Itoa(MaxValues)+" times")
		return nil
	}
	return list
}

func validState(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return len(s) >= 1 && len(s) <= maxState
}

func (p *parser) text() string {
	s := strings.TrimSpace(p.one(paramText))
	if utf8.RuneCountInString(s) > MaxText {
		p.fail(paramText, "must be at most "+strconv.Itoa(MaxText)+" characters long")
		return ""
	}
	return s
}

// limit returns 0 for the default, so that a query has one form whether the default is spelled out
// or not.
func (p *parser) limit() int {
	s := p.one(paramLimit)
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > MaxLimit {
		p.fail(paramLimit, "must be a whole number from 1 to "+strconv.Itoa(MaxLimit))
		return 0
	}
	if n == DefaultLimit {
		return 0
	}
	return n
}

func (p *parser) cursor() (*state.Position, bool) {
	s := p.one(paramCursor)
	if s == "" {
		return nil, false
	}
	pos, newer, ok := decode(s)
	if !ok {
		p.fail(paramCursor, "must be a cursor taken from an earlier page, unchanged")
		return nil, false
	}
	return &pos, newer
}
