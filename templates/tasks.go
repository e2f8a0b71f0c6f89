package templates

import (
	"cmp"
	"slices"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// Tasks is the content of the page that lists tasks.
type Tasks struct {
	Query   TaskQuery
	Views   []ViewTab
	States  []StateChoice
	Facets  []Facet
	Columns ColumnMenu
	Exports []Link
	Chart   Chart

	Table    Table
	Tasks    []state.Task
	Total    history.Count
	Sorted   string // what the list is sorted by, in words; empty if by change
	Searched int    // how many tasks were looked at, 0 if all

	Selection *Selection // nil if rows cannot be chosen

	Newest  string         // address of the first page, empty on it
	Newer   string         // address of the newer page, empty at the top
	Older   string         // address of the older page, empty at the end
	Broader []BroaderQuery // queries to offer when nothing matches
}

// TaskQuery is the query as the visitor entered it.
type TaskQuery struct {
	Text     string      // the query
	Hidden   []Param     // what the form carries beside it
	Filtered bool        // the query leaves something out
	Clear    string      // address of the same list without a query
	Error    *QueryError // nil if all is right
}

// Param is a parameter of an address.
type Param struct{ Name, Value string }

// QueryError says what of a request cannot be read.
type QueryError struct {
	Param                string // the wrong parameter, empty if it is the query
	Before, Token, After string // the query, parted where it is wrong
	Message              string // a sentence; to be read after the name where Param is set
	Correct              *Link  // the same with the nearest known name, nil if there is none
	Shown                string // the query that the list answers instead, empty if all tasks are shown
}

// StateChoice is a state to filter by.
type StateChoice struct {
	State state.State
	Count history.Count
	On    bool
	Href  string
}

// Facet is a field with its most frequent values to choose from.
type Facet struct {
	ID, Label string
	Values    []FacetValue
}

// FacetValue is one value of a field. Href is the list with it, or without it where it is on.
type FacetValue struct {
	Text  string
	Count history.Count
	On    bool
	Href  string
}

// ViewTab is a saved view. Its count may be a minute old.
type ViewTab struct {
	Name, Href string
	Count      *history.Count // nil if unknown
	Current    bool
}

// BroaderQuery is a query with one condition less.
type BroaderQuery struct {
	Condition string // that was dropped, worker:celery@a
	Href      string
	Total     history.Count
}

// Table is the shape of a table of tasks. The zero value has the plain columns and cannot be sorted.
type Table struct {
	Columns []string               // ids in order, empty for the plain ones
	Sorts   map[string]Sort        // by column
	Outbox  map[string]*TaskOutbox // tasks that applications' outboxes know, by id
	Words   []string               // texts that were searched for, to be marked
	form    string                 // id of the form that rows can be chosen for, empty if they cannot
}

// Sort is a header that sorts.
type Sort struct {
	Href  string // of the list sorted by the column, the other way round if it is so already
	Order string // ascending or descending if the list is sorted so, else empty
}

// sortOrder is how a list is sorted by a column, whose keys are every second of more and key; empty if by another.
func sortOrder(sorts map[string]Sort, key string, more []string) string {
	order := sorts[key].Order
	for i := 1; i < len(more); i += 2 {
		order = cmp.Or(order, sorts[more[i]].Order)
	}
	return order
}

// ColumnMenu is what can be done to the columns.
type ColumnMenu struct {
	Shown  []ColumnChoice
	Others []ColumnChoice
	Reset  string // address with the plain columns, empty if they are shown
}

// ColumnChoice is a column with the addresses of the lists that have it elsewhere. Empty ones do not exist.
type ColumnChoice struct {
	ID, Label           string
	Earlier, Later, Off string // of a shown column
	On                  string // of another
}

// PlainColumns are the IDs of the default columns.
func PlainColumns() []string { return plainColumns() }

// ColumnLabel is the heading of a column, empty if there is no such column.
func ColumnLabel(id string) string {
	for _, c := range columns() {
		if c.ID == id {
			return c.Label
		}
	}
	return ""
}

// callLength bounds the arguments and the exception in a row, in bytes.
const callLength = 120

// has reports whether a column was chosen.
func (t Table) has(id string) bool { return slices.Contains(t.Columns, id) }

// Page draws the whole page.
func (v Tasks) Page(l Layout) templ.Component { return tasks(l, v) }

// class names a table for the style sheet: chosen columns are never hidden for want of space.
func (t Table) class() string {
	if len(t.Columns) == 0 || slices.Equal(t.Columns, plainColumns()) {
		return "tasks"
	}
	return "tasks picked"
}

// total says how many tasks match, and how they are sorted.
func (v Tasks) total() string {
	switch {
	case v.Query.Error != nil:
		return ""
	case v.Sorted != "":
		return countTasks(v.Total) + ", " + v.Sorted
	}
	return countTasks(v.Total)
}

// preview is the call as one line of at most n characters: the positional arguments, then the named.
func preview(t state.Task, n int) string {
	line := ""
	if t.Args != nil {
		line = excerpt(*t.Args, n)
	}
	if t.Kwargs != nil && *t.Kwargs != "{}" && *t.Kwargs != "" {
		if line == "()" || line == "[]" {
			line = ""
		} else if line != "" {
			line += " "
		}
		line = excerpt(line+excerpt(*t.Kwargs, n), n)
	}
	return line
}
