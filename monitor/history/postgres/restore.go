package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

// Restore reads what a monitor needs to continue where the last one stopped.
func (d *DB) Restore(ctx context.Context, r history.RestoreOptions) error {
	var counted uint64
	for _, step := range []func() error{
		func() (err error) {
			counted, err = tables.RestoreCheckpoint(ctx, d.read, r.Checkpoint)
			return err
		},
		func() error {
			return eachTask(ctx, d.read, `SELECT id, body FROM tasks WHERE week = 0 ORDER BY clock DESC, micros DESC`, nil, r.Task)
		},
		func() error { return tables.RestoreFinished(ctx, d.read, r, d.finished) },
		func() error { return d.restoreJournal(ctx, counted, r.Journal) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("restore history: %w", explain(err))
		}
	}
	return nil
}

// RestoreMore reads finished and lost tasks that Restore has omitted.
func (d *DB) RestoreMore(ctx context.Context, from state.Position, limit int) (tasks []history.SavedTask, left *state.Position, err error) {
	defer annotate(&err, "restore more of the history")
	tasks, left, err = tables.RestoreMore(ctx, from, limit, d.finished)
	return tasks, left, err
}

// errStop stops the reading of rows.
var errStop = errors.New("enough")

// finished calls f with about n finished and lost tasks, newest change first, until f omits one: from the moment of from on, nil for
// all. It returns the position of the one that was omitted.
func (d *DB) finished(
	ctx context.Context, from *state.Position, n int, f func(p state.Position, body []byte) (omit bool, err error),
) (left *state.Position, err error) {
	where, args := ``, []any(nil)
	if from != nil {
		where, args = ` AND (clock, micros) <= (?, ?)`, []any{from.Stamp.Clock, from.Stamp.Micros}
	}
	// A limit has the server read by the index, rather than sort all tasks.
	for size := n + restoredAtOnce; ; size *= 4 {
		read := 0
		var positions []state.Position
		var bodies [][]byte
		err = tables.EachRow(ctx, d.read, `SELECT clock, micros, origin, id, body FROM tasks WHERE week > 0`+where+`
			ORDER BY clock DESC, micros DESC, origin DESC, id DESC LIMIT ?`, append(args, size), func(rows *sql.Rows) error {
			var p state.Position
			var body []byte
			read++
			if err := rows.Scan(&p.Stamp.Clock, &p.Stamp.Micros, &p.Stamp.Origin, &p.ID, &body); err != nil {
				return err
			}
			positions, bodies = append(positions, p), append(bodies, body)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if read == size && tables.SameMoment(positions[min(n, read-1)], positions[read-1]) {
			continue // a moment of many tasks, which may go on
		}
		for i, p := range positions {
			omit, err := f(p, bodies[i])
			if err != nil {
				return nil, err
			}
			if omit {
				return &positions[i], nil
			}
		}
		return nil, nil //nolint:nilnil // none is left
	}
}

// restoredAtOnce is how many tasks beside those asked for are read to find the newest one that is left.
const restoredAtOnce = 100

// restoreJournal reads entry by entry, so that few are in memory.
func (d *DB) restoreJournal(
	ctx context.Context, counted uint64, f func(entry uint64, events []byte, checkpointed bool) error,
) error {
	return tables.EachRow(ctx, d.read, `SELECT entry, body FROM journal ORDER BY entry`, nil, func(rows *sql.Rows) error {
		var entry uint64
		var body []byte
		if err := rows.Scan(&entry, &body); err != nil {
			return err
		}
		return f(entry, body, entry <= counted)
	})
}
