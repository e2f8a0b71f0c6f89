package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// eachRow calls f with each row of a query. On the connections that read, f must not use the store.
func eachRow(ctx context.Context, q queryer, query string, args []any, f func(rows *sql.Rows) error) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// list returns the only column of all rows.
func list[T any](ctx context.Context, q queryer, query string, args ...any) ([]T, error) {
	var all []T
	err := eachRow(ctx, q, query, args, func(rows *sql.Rows) error {
		var v T
		err := rows.Scan(&v)
		all = append(all, v)
		return err
	})
	return all, err
}

// number returns the only value of a query.
func number[T any](ctx context.Context, q queryer, query string, args ...any) (n T, err error) {
	found, err := list[T](ctx, q, query, args...)
	if err == nil {
		n = found[0]
	}
	return n, err
}

// moment returns the time of microseconds since 1970 UTC, zero for NULL.
func moment(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64)
}

// notFound returns history.ErrNotFound for sql.ErrNoRows, and other errors as they are.
func notFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return history.ErrNotFound
	}
	return err
}

// wrap says what an error, if it is one, prevented.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
