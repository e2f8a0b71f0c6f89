package tables

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// EachRow calls f with each row of a query. f must not use the reader.
func EachRow(ctx context.Context, r Reader, query string, args []any, f func(rows *sql.Rows) error) error {
	rows, err := r.QueryContext(ctx, query, args...)
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

// List returns the only column of all rows.
func List[T any](ctx context.Context, r Reader, query string, args ...any) ([]T, error) {
	var all []T
	err := EachRow(ctx, r, query, args, func(rows *sql.Rows) error {
		var v T
		err := rows.Scan(&v)
		all = append(all, v)
		return err
	})
	return all, err
}

// Number returns the only value of a query.
func Number[T any](ctx context.Context, r Reader, query string, args ...any) (n T, err error) {
	found, err := List[T](ctx, r, query, args...)
	if err == nil {
		n = found[0]
	}
	return n, err
}

// Moment returns the time of microseconds since 1970 UTC, zero for NULL.
func Moment(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return time.UnixMicro(n.Int64)
}

// Micros returns a time as µs since 1970 UTC, nil for NULL if it is zero.
func Micros(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMicro()
}

// Minutes returns the number of whole minutes in a length of time.
func Minutes(length time.Duration) int64 { return int64(length / time.Minute) }

// StartMinute is the first minute that does not start before t.
func StartMinute(t time.Time) int64 {
	at := t.Unix() / 60
	if time.Unix(60*at, 0).Before(t) {
		at++
	}
	return at
}

// NotFound returns history.ErrNotFound for sql.ErrNoRows, and other errors as they are.
func NotFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return history.ErrNotFound
	}
	return err
}

// errStop stops the reading of rows.
var errStop = errors.New("enough")

// notNil returns empty bytes for nil, which would be NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
