// Package views keeps the saved views of the list of tasks: it checks what is to be saved and knows those that
// come with Umbel. It shows nothing and speaks no HTTP.
package views

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/query"
)

// MaxName bounds the name of a view, in characters.
const MaxName = 100

// Error says in a sentence what is wrong with a view.
type Error struct {
	Field   string // name, query, sort or cols; empty if it is none of these
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// System returns the views that come with Umbel. They have no ids and cannot be changed.
func System() []history.View {
	return []history.View{
		{Name: "Failing now", Query: "state:failure finished:-1h.."},
		{Name: "Slow now", Query: "run:>10s finished:-1h..", Sort: "-run"},
		{Name: "Scheduled", Query: "is:active -state:started eta:now..", Columns: "state,name,args,queue,worker,eta"},
		{Name: "Retrying", Query: "is:active is:retried"}, // between two attempts they are Received, too
		{Name: "Stuck", Query: "is:active started:..-1h", Sort: "started"},
		{Name: "Lost", Query: "is:lost"},
	}
}

// Tasks returns the list that a view shows. The error is a *query.Error.
func Tasks(v history.View) (query.Tasks, error) {
	values := url.Values{}
	for name, value := range map[string]string{"q": v.Query, "sort": v.Sort, "cols": v.Columns} {
		values.Set(name, value)
	}
	return query.Parse(values)
}

// Save keeps a view and returns it, and whether it is a new one. One without an id replaces that of the same name, if
// there is one. The error is an *Error, or one of the store.
func Save(ctx context.Context, s history.Views, v history.View) (saved history.View, created bool, err error) {
	v.Name = strings.Join(strings.FieldsFunc(v.Name, unicode.IsSpace), " ")
	v.Query = strings.TrimSpace(v.Query)
	if err := check(v); err != nil {
		return v, false, err
	}
	all, err := s.Views(ctx)
	if err != nil {
		return v, false, fmt.Errorf("save view: %w", err)
	}
	i := slices.IndexFunc(all, func(old history.View) bool { return strings.EqualFold(old.Name, v.Name) })
	switch {
	case v.ID == "" && i >= 0:
		v.ID = all[i].ID
	case i >= 0 && all[i].ID != v.ID:
		return v, false, &Error{Field: "name", Message: fmt.Sprintf("A view named %q already exists.", all[i].Name)}
	}
	created = v.ID == ""
	v, err = s.SaveView(ctx, v)
	if errors.Is(err, history.ErrTooManyViews) {
		return v, false, &Error{Message: fmt.Sprintf("There are already %d views: delete one first.", history.MaxViews)}
	}
	if err != nil {
		return v, false, fmt.Errorf("save view: %w", err)
	}
	return v, created, nil
}

// check reports what cannot be saved.
func check(v history.View) error {
	switch n := utf8.RuneCountInString(v.Name); {
	case n == 0 || n > MaxName || !utf8.ValidString(v.Name) || strings.ContainsFunc(v.Name, unicode.IsControl):
		return &Error{Field: "name", Message: fmt.Sprintf("The name of a view must have 1 to %d characters.", MaxName)}
	case slices.ContainsFunc(System(), func(s history.View) bool { return strings.EqualFold(s.Name, v.Name) }):
		return &Error{Field: "name", Message: fmt.Sprintf("The view %q is built in: choose another name.", v.Name)}
	}
	_, err := Tasks(v)
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		field := wrong.Param
		if field == "q" {
			field = "query"
		}
		return &Error{Field: field, Message: "Cannot save the view: " + wrong.Error() + "."}
	}
	return err
}

// Find returns a saved view, history.ErrNotFound if there is none.
func Find(ctx context.Context, s history.Views, id string) (history.View, error) {
	all, err := s.Views(ctx)
	if err != nil {
		return history.View{}, fmt.Errorf("find view: %w", err)
	}
	i := slices.IndexFunc(all, func(v history.View) bool { return v.ID == id })
	if i < 0 {
		return history.View{}, history.ErrNotFound
	}
	return all[i], nil
}
