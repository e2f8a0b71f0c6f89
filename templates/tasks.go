package templates

import (
	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/state"
)

// Tasks is the content of the page that lists tasks.
type Tasks struct {
	Filter Filter
	Found  state.Page
	Counts state.Counts

	// Suggestions for the fields of the filter.
	KnownNames   []string
	KnownWorkers []string

	Newest string  // address of the first page, empty on it
	Newer  string  // address of the newer page, empty at the top
	Older  string  // address of the older page, empty at the end
	Wider  []Wider // queries to offer when nothing matches
}

// Filter is what the visitor asked for, as it was asked for.
type Filter struct {
	States  []state.State
	Names   []string
	Workers []string
	Text    string
	Root    string
	Limit   int    // rows, 0 for the default
	Param   string // the parameter that is wrong, empty if none
	Message string // what is wrong with it, to be read after its name
}

// Wider is a query with one condition less.
type Wider struct {
	Condition string // that was dropped, worker celery@a
	Href      string
	Total     *int // tasks it matches, nil if that is not known
}

// Page draws the whole page.
func (v Tasks) Page(c Chrome) templ.Component { return tasks(c, v) }

// Regions are the counts, the words for an empty list and the links to other pages.
func (v Tasks) Regions(s Site) []Region {
	list := []Region{
		{ID: "matches", Body: matches(v)},
		{ID: "nothing", Body: nothing(s, v)},
		{ID: "pager", Body: pager(s, v)},
	}
	for _, st := range v.chips() {
		list = append(list, Region{ID: chipID(st), Body: chipCount(st, v.Counts.ByState[st])})
	}
	return list
}

// Lists holds the rows.
func (v Tasks) Lists(s Site) []List { return []List{taskList(s, "tasks", v.Found.Tasks)} }

func taskList(s Site, id string, tasks []state.Task) List {
	l := List{ID: id}
	for _, t := range tasks {
		l.Rows = append(l.Rows, Region{ID: rowID(t.ID), Body: taskRow(s, t)})
	}
	return l
}

// chips are the states to choose from: the usual ones, those that tasks are in, and the chosen.
func (v Tasks) chips() []state.State { return statesOf(v.Counts.ByState, v.Filter.States...) }

func chipID(s state.State) string { return "n-" + string(s) }

func (f Filter) empty() bool {
	return len(f.States) == 0 && len(f.Names) == 0 && len(f.Workers) == 0 && f.Text == "" && f.Root == ""
}

func (f Filter) wrong(param string) bool { return f.Param == param }

// inField splits the values of a repeatable parameter: the last goes into its field, the ones before
// it stand beside as boxes to untick.
func inField(values []string) (field string, boxes []string) {
	if len(values) == 0 {
		return "", nil
	}
	last := len(values) - 1
	return values[last], values[:last]
}

// total tells how many tasks match, in words that hold when counting was given up.
func (v Tasks) total() string {
	switch n := len(v.Found.Tasks); {
	case v.Filter.Param != "":
		return ""
	case v.Found.Total != nil:
		return plural(*v.Found.Total, "task", "tasks")
	case v.Older == "" && v.Newer == "":
		return plural(n, "task", "tasks")
	default:
		return "more than " + plural(n, "task", "tasks")
	}
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
