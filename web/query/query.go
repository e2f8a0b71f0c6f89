// Package query reads and writes the URL parameters that select tasks, for the JSON API, the pages
// and the names of live topics alike. It knows nothing of HTTP and never looks at a task.
package query

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Bounds of what a query may hold.
const (
	DefaultLimit = 50
	MaxLimit     = 500
	MaxText      = query.MaxLength // characters of q
	MaxValues    = 100             // values of one repeatable parameter
	maxValue     = 1_024           // bytes of one name, worker or root
	maxState     = 64              // bytes of one state
)

// The parameters of a query, in the order in which they are checked.
const (
	paramState  = "state"
	paramName   = "name"
	paramWorker = "worker"
	paramText   = "q"
	paramRoot   = "root"
	paramSort   = "sort"
	paramCols   = "cols"
	paramChart  = "chart"
	paramLimit  = "limit"
	paramCursor = "cursor"
)

// Error says which parameter is wrong and why.
type Error struct {
	Param   string       // name of the parameter as the client sent it
	Message string       // what is wrong, to be read after the name: "must be …"
	Query   *query.Error // where q is wrong, nil for other parameters
}

// Error returns the name and the message in one sentence.
func (e *Error) Error() string { return e.Param + " " + e.Message }

// Tasks selects a page of the list of tasks. Parse makes it; the zero value selects the newest
// tasks. Its slices must not be modified.
type Tasks struct {
	Query query.Query // q, and what the parameters of single fields add to it
	Text  string      // q as it was written; the spelling of Query where other parameters add to it
	Sort  query.Sort
	Cols  []query.Field   // columns to show, in their order; none means the usual ones
	Chart Chart           // above the list; its span narrows the list too
	Limit int             // 1 to MaxLimit; 0 means DefaultLimit
	From  *state.Position // the page continues after this row; nil means the first page
	Newer bool            // the page lies before From, towards the top of the list
}

// Parse reads a query from URL parameters. Empty values count as absent, as forms send them, and unknown parameters are
// ignored. If parameters are wrong it returns an *Error of the first, beside a query of all that was right.
func Parse(v url.Values) (Tasks, error) {
	p := parser{values: v}
	var t Tasks
	t.Query, t.Text = p.query()
	t.Sort = p.sort()
	t.Cols = p.cols()
	t.Chart = p.chart()
	t.Chart.Span = p.span()
	t.Limit = p.limit()
	t.From, t.Newer = p.cursor()
	return t, p.failed()
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

// failed returns the first error, nil if there was none.
func (p *parser) failed() error {
	if p.err == nil {
		return nil
	}
	return p.err
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

// query reads q and the parameters of single fields, which are further conditions. It also returns q as it
// was written.
func (p *parser) query() (query.Query, string) {
	fields := query.Query{}
	for _, f := range [...]struct {
		field  query.Field
		values []string
	}{
		{query.State, p.states()},
		{query.Name, p.list(paramName)},
		{query.Worker, p.list(paramWorker)},
		{query.Root, p.list(paramRoot)},
	} {
		if len(f.values) > 0 {
			fields = fields.With(query.Equal(f.field, f.values...))
		}
	}
	text := strings.TrimSpace(p.one(paramText))
	q, err := query.Parse(text)
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		p.failQuery("is invalid: "+wrong.Message, wrong)
	}
	if fields.All() {
		return q, text
	}
	q = q.And(fields)
	if _, err := query.Parse(q.String()); err != nil {
		p.fail(paramText, "and the field parameters together are too long: "+err.Error())
		return query.Query{}, text
	}
	return q, q.String()
}

func (p *parser) failQuery(message string, wrong *query.Error) {
	if p.err == nil {
		p.err = &Error{Param: paramText, Message: message, Query: wrong}
	}
}

// list returns the values of a repeatable parameter.
func (p *parser) list(param string) []string {
	var list []string
	for _, v := range p.values[param] {
		if len(v) > maxValue {
			p.fail(param, "must be at most "+strconv.Itoa(maxValue)+" bytes long")
			continue
		}
		if v != "" {
			list = append(list, v)
		}
	}
	return p.few(param, list)
}

// states returns the states, which may be repeated, separated by commas, or both.
func (p *parser) states() []string {
	var list []string
	for _, v := range p.values[paramState] {
		for s := range strings.SplitSeq(v, ",") {
			if s = strings.TrimSpace(s); s == "" {
				continue
			}
			if !validState(s) {
				p.fail(paramState, "must be made of 1 to 64 letters, digits, _ and -, such as SUCCESS")
				continue
			}
			list = append(list, s)
		}
	}
	return p.few(paramState, list)
}

// few returns the list, or nothing if it is too long.
func (p *parser) few(param string, list []string) []string {
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

func (p *parser) sort() query.Sort {
	s, ok := query.ParseSort(p.one(paramSort))
	if !ok {
		p.fail(paramSort, "must be one of "+strings.Join(sortable(), ", ")+", with a leading - for descending order")
	}
	return s
}

func sortable() []string {
	var names []string
	for _, f := range query.Fields() {
		if f.Sortable() {
			names = append(names, f.String())
		}
	}
	return names
}

// cols returns the columns, each once.
func (p *parser) cols() []query.Field {
	var cols []query.Field
	for name := range strings.SplitSeq(p.one(paramCols), ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		f, ok := query.FieldNamed(name)
		if !ok || f == query.Is {
			p.fail(paramCols, "has no column "+strconv.Quote(name)+"; these are: "+strings.Join(columns(), ", "))
			continue
		}
		if !slices.Contains(cols, f) {
			cols = append(cols, f)
		}
	}
	return cols
}

func (p *parser) chart() Chart {
	c, err := ParseChart(p.one(paramChart))
	if wrong, ok := errors.AsType[*Error](err); ok {
		p.fail(wrong.Param, wrong.Message)
	}
	return c
}

func columns() []string {
	var names []string
	for _, f := range query.Fields() {
		if f != query.Is {
			names = append(names, f.String())
		}
	}
	return names
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
		p.fail(paramCursor, "must be a cursor from an earlier page")
		return nil, false
	}
	return &pos, newer
}
