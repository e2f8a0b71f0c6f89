package history

import (
	"context"
	"errors"
)

// MaxViews is how many views are kept.
const MaxViews = 100

// ErrFull says that there are as many views as are kept.
var ErrFull = errors.New("too many views")

// Views keeps saved views of the list of tasks.
type Views interface {
	// Views returns all views by name.
	Views(ctx context.Context) ([]View, error)
	// SaveView writes a view and returns it; one without an ID is new, and ErrFull if there is no room for it.
	SaveView(ctx context.Context, v View) (View, error)
	// DeleteView removes a view, ErrMissing if there is none.
	DeleteView(ctx context.Context, id string) error
}

// View is a saved query with the shape of its table.
type View struct {
	ID    string
	Name  string
	Query string // what the visitor wrote
	Sort  string // as in an address
	Cols  string // as in an address
}
