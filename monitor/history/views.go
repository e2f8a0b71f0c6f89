package history

import (
	"context"
	"errors"
)

// MaxViews is how many views can be saved.
const MaxViews = 100

// ErrTooManyViews is returned when MaxViews are saved already.
var ErrTooManyViews = errors.New("too many views")

// Views stores saved views of the task list.
type Views interface {
	// Views returns all views by name.
	Views(ctx context.Context) ([]View, error)
	// SaveView creates a view, if it has no ID, or replaces it. The errors are ErrTooManyViews and ErrNotFound.
	SaveView(ctx context.Context, v View) (View, error)
	// DeleteView removes a view, ErrNotFound if there is none.
	DeleteView(ctx context.Context, id string) error
}

// View is a saved query with the sort order and columns of its table.
type View struct {
	ID      string
	Name    string
	Query   string // as entered
	Sort    string // as in a URL
	Columns string // as in a URL
}
