package tables

import (
	"errors"
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
)

// Wrap says what an error, if it is one, prevented.
func Wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Annotate says what *err prevented, and, by explain, what it means and what to do about it, unless it is nil or one that callers
// check for.
func Annotate(err *error, explain func(error) error, format string, args ...any) {
	for _, known := range []error{nil, history.ErrNotFound, history.ErrTooManyViews, history.ErrKeyReused} {
		if errors.Is(*err, known) {
			return
		}
	}
	*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), explain(*err))
}
