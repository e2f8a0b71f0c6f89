package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

const (
	maxProbes = 10_000 // queries for ranges of one damaged table
	minRow    = 16     // bytes that a row takes at least
)

// fatalError stops the reading of a table: it is not about the damaged file.
type fatalError struct{ error }

func (e fatalError) Unwrap() error { return e.error }

// span is a range of keys, none of which is negative.
type span struct{ from, to int64 }

// ranges calls f, which returns the key of a row, with all rows that can be read. It reads from both ends to the first
// damaged place, then bisects what is in between.
func (s *recovery) ranges(ctx context.Context, table, query, key string, f func(*sql.Rows) (int64, error)) error {
	up := query + `BETWEEN ? AND ? ORDER BY ` + key
	left, whole, err := s.narrow(ctx, up, span{0, math.MaxInt64}, f)
	if err != nil || whole {
		return err
	}
	s.markIncomplete(table)
	if left.to == math.MaxInt64 { // the end cannot be read: the size of the file bounds the number of rows
		left.to = left.from + s.size/minRow
	}
	for spans, probes := []span{left}, 0; len(spans) > 0 && probes < maxProbes; probes++ {
		left, whole, err := s.narrow(ctx, up, spans[0], f)
		spans = spans[1:]
		if err != nil {
			return err
		}
		if middle := left.from + (left.to-left.from)/2; !whole && left.from < left.to {
			spans = append(spans, span{left.from, middle}, span{middle + 1, left.to})
		}
	}
	return nil
}

// narrow calls f with the rows of a range from both ends, and returns the rest in the middle, or whole if there is none.
func (s *recovery) narrow(ctx context.Context, up string, r span, f func(*sql.Rows) (int64, error)) (left span, whole bool, err error) {
	lowest, highest := int64(math.MaxInt64), int64(math.MinInt64)
	note := func(rows *sql.Rows) (int64, error) {
		key, err := f(rows)
		if err == nil {
			lowest, highest = min(lowest, key), max(highest, key)
		}
		return key, err
	}
	if whole, err = s.each(ctx, up, []any{r.from, r.to}, note); whole || err != nil {
		return r, whole, err
	}
	if highest >= r.from {
		if highest == r.to {
			return r, true, nil
		}
		r.from = highest + 1
	}
	lowest = math.MaxInt64
	if whole, err = s.each(ctx, up+` DESC`, []any{r.from, r.to}, note); whole || err != nil {
		return r, whole, err
	}
	if lowest < math.MaxInt64 {
		if lowest == r.from {
			return r, true, nil
		}
		r.to = lowest - 1
	}
	return r, false, nil
}

// each calls f with the rows of a query and reports whether all could be read.
func (s *recovery) each(ctx context.Context, query string, args []any, f func(*sql.Rows) (int64, error)) (whole bool, err error) {
	err = tables.EachRow(ctx, s.from, query, args, func(rows *sql.Rows) error {
		_, err := f(rows)
		return err
	})
	if stop, ok := errors.AsType[fatalError](err); ok {
		return false, stop.error
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return err == nil, nil // other errors are damage, or the table is missing
}
