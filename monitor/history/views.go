package history

import (
	"context"
	"errors"
)

// MaxViews is how many views are kept.
const MaxViews = 100

// ErrTooManyViews says that there are as many views as are kept.
var ErrTooManyViews = errors.New("too many views")

// Views keeps saved views of the list of tasks.
type Views interface {
	// Views returns all views by name.
	Views(ctx context.Context) ([]View, error)
	// SaveView writes a view and returns it; one without an ID is new, and ErrTooManyViews if there is no room for it.
	SaveView(ctx context.Context, v View) (View, error)
	// DeleteView removes a view, ErrNotFound if there is none.
	DeleteView(ctx context.Context, id string) error
}

// View is a saved query with the shape of its table.
type View struct {
	ID      string
	Name    string
	Query   string // what the visitor wrote
	Sort    string // as in an address
	Columns string // as in an address
}
