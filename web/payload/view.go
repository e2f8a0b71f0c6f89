package payload

import (
	"context"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/views"
)

// Views returns the views whose queries do not ask for payloads: what was searched for may be an argument.
func (s stored) Views(ctx context.Context) ([]history.View, error) {
	all, err := s.History.Views(ctx)
	var shown []history.View
	for _, v := range all {
		if !Reads(v.Query) {
			shown = append(shown, v)
		}
	}
	return shown, err
}

// SaveView saves a view with the query that those who save it can see the result of. It replaces none that they cannot see.
func (s stored) SaveView(ctx context.Context, v history.View) (history.View, error) {
	q, err := lang.Parse(v.Query)
	if err != nil {
		return v, err
	}
	shown, err := Query(q)
	if err != nil {
		return v, err
	}
	if shown.String() != q.String() {
		v.Query = shown.String()
	}
	if err := s.checkView(ctx, v.ID, v.Name); err != nil {
		return v, err
	}
	return s.History.SaveView(ctx, v)
}

// DeleteView removes a view that is shown.
func (s stored) DeleteView(ctx context.Context, id string) error {
	if err := s.checkView(ctx, id, ""); err != nil {
		return err
	}
	return s.History.DeleteView(ctx, id)
}

// checkView refuses the ID and the name of a view that is hidden.
func (s stored) checkView(ctx context.Context, id, name string) error {
	all, err := s.History.Views(ctx)
	for _, v := range all {
		switch {
		case !Reads(v.Query):
		case v.ID == id:
			return history.ErrNotFound
		case name != "" && strings.EqualFold(v.Name, name):
			return &views.Error{Field: "name", Message: "Another view has this name: choose another one."}
		}
	}
	return err
}
