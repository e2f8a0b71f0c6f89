package postgres

import (
	"context"
	"errors"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

// around selects the tasks that the instant ?1 divides, at most ?2. The index tasks_divided has those whose receipts are more than
// 10 s apart.
const around = `SELECT id, body FROM tasks WHERE last_receipt > ?1 AND last_receipt <= ?1 + 10000000
		AND first_receipt <= ?1 AND first_receipt >= last_receipt - 10000000
	UNION ALL SELECT id, body FROM tasks WHERE first_receipt < last_receipt - 10000000 AND int8range(first_receipt, last_receipt) @> ?1::bigint
	UNION ALL SELECT id, body FROM tasks WHERE lost > ?1 AND last_receipt <= ?1 LIMIT ?2`

// TasksAround calls f with the saved events of the tasks that an instant divides.
func (d *DB) TasksAround(ctx context.Context, at int64, limit int, f func(id string, events []byte) error) (more bool, err error) {
	return d.eachUpTo(ctx, around, limit, f, at, limit+1)
}

// ActiveSince calls f with the saved events of the unfinished tasks of which nothing was received after an instant.
func (d *DB) ActiveSince(ctx context.Context, at int64, limit int, f func(id string, events []byte) error) (more bool, err error) {
	const active = `SELECT id, body FROM tasks WHERE final = 0 AND last_receipt <= ?1 AND (lost IS NULL OR lost <= ?1)
		ORDER BY last_receipt DESC LIMIT ?2`
	return d.eachUpTo(ctx, active, limit, f, at, limit+1)
}

// ChangedBetween calls f with the saved events of the tasks whose newest event was received after from and by to.
func (d *DB) ChangedBetween(ctx context.Context, from, to int64, limit int, f func(id string, events []byte) error) (more bool, err error) {
	const changed = ` FROM tasks WHERE last_receipt > ? AND last_receipt <= ? LIMIT ?`
	n, err := tables.Number[int](ctx, d.read, `SELECT count(*) FROM (SELECT 1`+changed+`) AS found`, from, to, limit+1)
	if err != nil || n > limit {
		return n > limit, tables.Wrap("read past", err)
	}
	return d.eachUpTo(ctx, `SELECT id, body`+changed, limit, f, from, to, limit)
}

// eachUpTo calls f with the first tasks that a query finds, and reports whether it finds more.
func (d *DB) eachUpTo(ctx context.Context, query string, limit int, f func(id string, events []byte) error, args ...any) (more bool, err error) {
	defer annotate(&err, "read past")
	n := 0
	err = eachTask(ctx, d.read, query, args, func(id string, events []byte) error {
		if n++; n > limit {
			return errStop
		}
		return f(id, events)
	})
	if errors.Is(err, errStop) {
		return true, nil
	}
	return false, err
}

// Steps returns the newest receipt before an instant, and the next after it. Tasks of which all was received on one side of it have
// theirs in their rows.
func (d *DB) Steps(ctx context.Context, at int64) (before, after int64, err error) {
	defer annotate(&err, "read past")
	err = d.read.QueryRowContext(ctx, `SELECT coalesce((SELECT max(last_receipt) FROM tasks WHERE last_receipt < $1), 0),
		coalesce((SELECT min(last_receipt) FROM tasks WHERE last_receipt > $1), 0)`, at).Scan(&before, &after)
	if err != nil {
		return 0, 0, err
	}
	return tables.NearestReceipts(ctx, d, at, before, after)
}
