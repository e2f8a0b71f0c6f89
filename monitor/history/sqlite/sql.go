package sqlite

import (
	"context"
	"database/sql"
	"fmt"
)

// scan calls f for every row and closes the rows.
func scan(rows *sql.Rows, f func() error) error {
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		if err := f(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// list returns the only column of all rows.
func list[T any](ctx context.Context, q queryer, query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...) //nolint:sqlclosecheck // scan closes them
	if err != nil {
		return nil, err
	}
	var all []T
	err = scan(rows, func() error {
		var v T
		err := rows.Scan(&v)
		all = append(all, v)
		return err
	})
	return all, err
}

// wrap says what an error, if it is one, prevented.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
