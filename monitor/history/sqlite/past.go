package sqlite

import (
	"context"
	"database/sql"
	"math/bits"

	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/where"
)

// Blocks of time, for tasks.block.
const (
	minBlock   = 16 // 65 ms
	maxBlock   = 51 // all time until 2041
	blockShift = 40
)

// blockOf returns the number of the smallest block that holds two times.
func blockOf(first, last int64) int64 {
	k := max(minBlock, min(maxBlock, bits.Len64(uint64(first^last))))
	return int64(k)<<blockShift | first>>k
}

// blocks returns the numbers of all blocks that hold a time.
func blocks(at int64) []int64 {
	var list []int64
	for k := minBlock; k <= maxBlock; k++ {
		list = append(list, int64(k)<<blockShift|at>>k)
	}
	return list
}

// around selects the tasks that the instant ?2 divides; ?1 are its blocks.
const around = `SELECT task FROM tasks INDEXED BY tasks_by_block
		WHERE block IN (SELECT value FROM json_each(?1)) AND first_receipt <= ?2 AND last_receipt > ?2 AND block IS NOT NULL
	UNION SELECT task FROM tasks INDEXED BY tasks_lost WHERE lost > ?2 AND ` + lastReceipt + ` <= ?2`

// TasksAround calls f with the saved events of the tasks that an instant divides.
func (d *DB) TasksAround(ctx context.Context, at int64, limit int, f func(id string, events []byte) error) (more bool, err error) {
	return d.eachTask(ctx, around+` LIMIT ?3`, limit, f, jsonArray(blocks(at)), at, limit+1)
}

// ActiveSince calls f with the saved events of the unfinished tasks of which nothing was received after an instant.
func (d *DB) ActiveSince(ctx context.Context, at int64, limit int, f func(id string, events []byte) error) (more bool, err error) {
	const active = `SELECT task FROM tasks INDEXED BY tasks_by_receipt WHERE final = 0 AND ` + lastReceipt + ` <= ?
		AND (lost IS NULL OR lost <= ?) ORDER BY ` + lastReceipt + ` DESC LIMIT ?`
	return d.eachTask(ctx, active, limit, f, at, at, limit+1)
}

// ChangedBetween calls f with the saved events of the tasks whose newest event was received after from and by to.
func (d *DB) ChangedBetween(ctx context.Context, from, to int64, limit int, f func(id string, events []byte) error) (more bool, err error) {
	const changed = `SELECT task FROM tasks INDEXED BY tasks_by_receipt WHERE final IN (0, 1, 2) AND ` + lastReceipt + ` > ? AND ` + lastReceipt + ` <= ? LIMIT ?`
	n, err := tables.Number[int](ctx, d.read, `SELECT count(*) FROM (`+changed+`)`, from, to, limit+1)
	if err != nil || n > limit {
		return n > limit, tables.Wrap("read past", err)
	}
	return d.eachTask(ctx, changed, limit, f, from, to, limit)
}

// eachTask calls f with the events of the first tasks that a statement selects, and reports whether it selects more.
func (d *DB) eachTask(ctx context.Context, selected string, limit int, f func(id string, events []byte) error, args ...any) (more bool, err error) {
	defer annotate(&err, "read past")
	err = d.snapshot(ctx, func(q tables.Reader) error {
		tasks, err := tables.List[int64](ctx, q, selected, args...)
		if err != nil {
			return err
		}
		if more = len(tasks) > limit; more {
			tasks = tasks[:limit]
		}
		return tables.EachRow(ctx, q, `SELECT id, body FROM tasks JOIN events USING (task) WHERE task IN (SELECT value FROM json_each(?))`,
			[]any{jsonArray(tasks)}, func(rows *sql.Rows) error {
				var id any
				var body []byte
				if err := rows.Scan(&id, &body); err != nil {
					return err
				}
				return f(idText(id), body)
			})
	})
	return more, err
}

// Steps returns the newest receipt before an instant, and the next after it. Tasks of which all was received on one side of it have
// theirs in their rows.
func (d *DB) Steps(ctx context.Context, at int64) (before, after int64, err error) {
	defer annotate(&err, "read past")
	for _, final := range []int{where.ClassActive, where.ClassSucceeded, where.ClassFailed} {
		last, err := tables.Number[int64](ctx, d.read, `SELECT coalesce(max(`+lastReceipt+`), 0) FROM tasks WHERE final = ? AND `+lastReceipt+` < ?`, final, at)
		if err != nil {
			return 0, 0, err
		}
		next, err := tables.Number[int64](ctx, d.read, `SELECT coalesce(min(`+lastReceipt+`), 0) FROM tasks WHERE final = ? AND `+lastReceipt+` > ?`, final, at)
		if err != nil {
			return 0, 0, err
		}
		before = max(before, last)
		if after == 0 || next != 0 && next < after {
			after = next
		}
	}
	return tables.NearestReceipts(ctx, d, at, before, after)
}
