package templates

import (
	"net/url"

	"github.com/a-h/templ"
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
	switch {
	case v.Total.Unknown:
		return "all that match"
	case v.Total.N == 1 && !v.Total.AtLeast:
		return "the one that matches"
	}
	return "all " + v.Total.words() + " that match"
}

func (s Site) actTask() templ.SafeURL { return templ.SafeURL(s.Prefix + "/act/task") }

// actOnTask leads to what asks before something is done to a task.
func (s Site) actOnTask(action, id string) templ.SafeURL {
	return templ.SafeURL(s.Prefix + "/act/task?" + url.Values{"action": {action}, "id": {id}}.Encode())
}

func (s Site) publish() templ.SafeURL { return templ.SafeURL(s.Prefix + "/act/publish") }

// publishLike leads to the form that holds what a task was called with.
func (s Site) publishLike(id string) templ.SafeURL {
	return templ.SafeURL(s.Prefix + "/act/publish?" + url.Values{"retry_of": {id}}.Encode())
}
