package templates

import (
	"net/url"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/state/query"
)

// Views is the content of the page of saved views.
type Views struct {
	Views   []SavedView
	Message string // what went wrong, empty if nothing did
}

// SavedView is a query with a name.
type SavedView struct {
	ID, Name, Query string
	Href            string // of the list
}

// DeleteView asks whether a view is to go.
type DeleteView struct{ View SavedView }

// Page draws the whole page.
func (v Views) Page(l Layout) templ.Component { return views(l, v) }

// Page draws the whole page.
func (v DeleteView) Page(l Layout) templ.Component { return deleteView(l, v) }

func (u URLs) view(id string) templ.SafeURL {
	return u.path("/views") + "/" + templ.SafeURL(url.PathEscape(id))
}

func (u URLs) query(q string) templ.SafeURL { return u.tasksWhere("q", q) }

// related is the list of tasks that are causally related to one.
func (u URLs) related(f query.Field, id string) templ.SafeURL {
	return u.query(query.New(query.Equal(f, id)).String())
}

// on counts the values that are chosen.
func (f Facet) on() int {
	n := 0
	for _, v := range f.Values {
		if v.On {
			n++
		}
	}
	return n
}

// example is a query with what it means.
type example struct{ Query, Words string }

// examples leave out what those cannot search by who may not see payloads.
func (u URLs) examples() []example {
	list := []example{
		{"state:failure name:billing.*", "Failed tasks of a module"},
		{"is:active started:..-1h", "Running for more than an hour"},
		{"run:>2s -worker:celery@a", "Ran for more than two seconds on other workers"},
		{"received:2026-11-20T10:00..2026-11-20T11:00", "Received in that hour (UTC)"},
		{"exc:timeout OR trace:socket", "Text in the exception or traceback"},
		{`"order 1042"`, "Text anywhere"},
	}
	if u.HidesPayload {
		return list[:len(list)-2]
	}
	return list
}

// fieldNames are the fields that a query may name.
func (u URLs) fieldNames() []string {
	var names []string
	for _, f := range query.Fields() {
		if !u.HidesPayload || f.Type() != query.Text {
			names = append(names, f.String())
		}
	}
	return names
}

// field is where a query is written.
type field struct {
	ID, Label, Hint, Text string
	Invalid               bool
}

// invalid reports whether the text itself is what is wrong.
func (a TaskQuery) invalid() bool { return a.Error != nil && a.Error.Param == "" }
