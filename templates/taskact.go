package templates

import (
	"net/url"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/state"
)

// Selection lets rows be chosen, to do something with them all.
type Selection struct {
	Query string // what the list answers, to choose all that match
}

// selectionID names the form that rows are chosen for.
const selectionID = "selection"

// table is the table, with boxes where rows can be chosen.
func (v Tasks) table() Table {
	if v.Selection != nil {
		v.Table.form = selectionID
	}
	return v.Table
}

// allMatching offers more than the rows of the page.
func (v Tasks) allMatching() string {
	return "all " + atLeast(v.Total) + " that match"
}

// actOnTask leads to what asks before something is done to a task.
func (u URLs) actOnTask(action, id string) templ.SafeURL {
	return u.path("/act/task?" + url.Values{"action": {action}, "id": {id}}.Encode())
}

// TaskAction is something that can be done to a task, or why it cannot.
type TaskAction struct {
	ID    string // of the element, where Flower has one for it
	Title string // imperative: Revoke
	Icon  string
	Href  string // of the page that asks before, empty if it cannot be done
	Why   string // it cannot
}

// reasons say why some of the actions cannot be done, those with the same reason together.
func reasons(list []TaskAction) []string {
	var said []string
	for i, a := range list {
		if a.Href != "" || slices.ContainsFunc(list[:i], func(b TaskAction) bool { return b.Why == a.Why }) {
			continue
		}
		titles := []string{a.Title}
		for _, b := range list[i+1:] {
			if b.Why == a.Why {
				titles = append(titles, strings.ToLower(b.Title))
			}
		}
		said = append(said, strings.Join(titles, ", ")+": "+a.Why)
	}
	return said
}

// StoredResult is what the result backend holds of a task.
type StoredResult struct {
	Source      string // URL of the backend, password masked
	Loading     bool   // it has not replied yet
	Unreachable bool
	Missing     bool // it holds nothing
	Expected    bool // it should hold something, since the task has ended

	Status     state.State
	Value      string // JSON, empty if there is none
	Size       int    // bytes that are stored, if Value is only the beginning
	JSON       string // address of all of it
	Unreadable string // why Value cannot be shown
	Exception  string
	Traceback  string
	DoneAt     int64 // µs since 1970, 0 if unknown
	NoZone     bool  // DoneAt was stored without a zone, and taken for UTC
	Disagrees  []string
}
