package templates

import (
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/state"
)

// Failures is the content of the page that lists groups of failures.
type Failures struct {
	Groups         []Failure
	Show           string   // open, resolved or all
	Open, Resolved int      // groups in all
	JustResolved   *Failure // what the visitor has just resolved
	Unreadable     bool     // the history cannot be read
	Self           string   // address of the page
	Newest, Older  string   // addresses of other pages of the list, empty if there are none
}

// Failure is a group of failed tasks. Times are µs since 1970.
type Failure struct {
	ID                   string
	Name                 string // of the tasks, empty if it is not known
	Type, Message, Place string // what the exceptions have in common
	Example              string // the newest exception
	TaskID               string // of the newest
	Count                Count
	LastHour             int
	First, Last          int64
	Trend                []int64 // by hour, the present one last
	ResolvedAt           int64   // 0 if it never was
	CameBack             bool    // after it was resolved
}

// Count is a number of tasks.
type Count struct {
	N     int
	Exact bool // else there are N at least
}

// Page draws the whole page.
func (v Failures) Page(l Layout) templ.Component { return failures(l, v) }

func failureRowID(id string) string { return "f-" + id }

// shown are the choices of groups, by the value of their parameter.
func (v Failures) shown() []shown {
	return []shown{
		{"open", "Open", v.Open},
		{"resolved", "Resolved", v.Resolved},
		{"all", "All", v.Open + v.Resolved},
	}
}

type shown struct {
	Value, Label string
	Count        int
}

// FailureGroup is the content of the page of one group.
type FailureGroup struct {
	Failure
	Exception, Traceback *string      // of the newest task
	Tasks                []state.Task // the newest
	JustResolved         bool         // the visitor has just resolved it
	Self                 string       // address of the page
}

// Page draws the whole page.
func (v FailureGroup) Page(l Layout) templ.Component { return failureGroup(l, v) }

// resolved reports whether the group needs nobody's attention.
func (f Failure) resolved() bool { return f.ResolvedAt != 0 && !f.CameBack }

// typeOr is the type of the exceptions, in words if it is not known.
func (f Failure) typeOr() string {
	if f.Type == "" {
		return "Unknown exception"
	}
	return f.Type
}

// example is the newest exception without its type, which stands before it.
func (f Failure) example() string {
	if f.Example == "" {
		return f.Message
	}
	return strings.TrimPrefix(f.Example, f.Type)
}

// name is the name of the tasks, nil if it is not known.
func (f Failure) name() *string {
	if f.Name == "" {
		return nil
	}
	return &f.Name
}

// tasksName is the name of the tasks, in words if it is not known.
func (f Failure) tasksName() string {
	if f.Name == "" {
		return "tasks with unknown name"
	}
	return f.Name
}

// text is the number, with a plus where there may be more.
func (c Count) text() string {
	if c.Exact {
		return number(c.N)
	}
	return number(c.N) + "+"
}

// tasks is the number with its noun.
func (c Count) tasks() string {
	if c.Exact {
		return plural(c.N, "task", "tasks")
	}
	return c.text() + " tasks"
}

// others tells on the page of one of the group's tasks how many more there are.
func (f Failure) others() string {
	switch n := (Count{f.Count.N - 1, f.Count.Exact}); n.N {
	case 0:
		return "No similar failures"
	case 1:
		return "1 similar failure"
	default:
		return n.text() + " similar failures"
	}
}

// series is the trend as a chart takes it.
func (f Failure) series() []float64 {
	list := make([]float64, len(f.Trend))
	for i, n := range f.Trend {
		list[i] = float64(n)
	}
	return list
}

// trendWords tell what the trend shows.
func (f Failure) trendWords() string {
	if len(f.Trend) == 0 {
		return "No trend available"
	}
	series := f.series()
	return "Failures by hour over the last " + number(len(series)) + " hours: " + number(int64(total(series))) +
		" in all, at most " + number(int64(peak(series))) + " in one hour, " + number(f.Trend[len(f.Trend)-1]) + " in this one"
}

// FailurePath is the address of a group's page, below the prefix.
func FailurePath(id string) string { return "/failures/" + id }

func (u URLs) failure(id string) templ.SafeURL { return u.path(FailurePath(id)) }

func (u URLs) failureJSON(id string) templ.SafeURL {
	return u.path("/api/v1/failures/" + id)
}

// failuresShown links to the groups that a choice shows.
func (u URLs) failuresShown(value string) templ.SafeURL {
	if value == "open" {
		return u.path("/failures")
	}
	return u.path("/failures?show=" + value)
}

// failuresOf links to the tasks of a group.
func (u URLs) failuresOf(id string) templ.SafeURL { return u.tasksWhere("q", "failure:"+id) }
