package sqlite

import "fmt"

// wrap says what an error, if it is one, prevented.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
