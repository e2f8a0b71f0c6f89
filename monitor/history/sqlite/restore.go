package sqlite

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
		func() error { return d.restoreActive(ctx, r.Task) },
		func() error { return tables.RestoreFinished(ctx, d.read, r, d.finished) },
		func() error { return d.restoreJournal(ctx, counted, r.Journal) },
	} {
		if err := step(); err != nil {
			d.noteDamage(err)
			return fmt.Errorf("restore history: %w", explain(err))
		}
	}
	return nil
}

func (d *DB) restoreActive(ctx context.Context, f func(id string, events []byte) error) error {
	return tables.EachRow(ctx, d.read, `SELECT t.id, e.body FROM tasks t JOIN events e USING (task) WHERE t.final = 0 AND t.lost IS NULL
		ORDER BY t.clock DESC, t.micros DESC`, nil, func(rows *sql.Rows) error {
		var key any
		var body []byte
		if err := rows.Scan(&key, &body); err != nil {
			return err
		}
		return f(idText(key), body)
	})
}

// RestoreMore reads finished and lost tasks that Restore has omitted.
func (d *DB) RestoreMore(ctx context.Context, from state.Position, limit int) (tasks []history.SavedTask, left *state.Position, err error) {
	defer annotate(&err, "restore more of the history")
	tasks, left, err = tables.RestoreMore(ctx, from, limit, d.finished)
	d.noteDamage(err)
	return tasks, left, err
}

// errStop stops the reading of rows.
var errStop = errors.New("enough")

// finished calls f with finished and lost tasks, newest change first, until f omits one: from the clock and time of from on, nil
// for all. It returns the position of the newest one that was omitted: among rows with equal clock and time, which SQL does not sort by
// origin and id.
func (d *DB) finished(
	ctx context.Context, from *state.Position, _ int, f func(p state.Position, body []byte) (omit bool, err error),
) (left *state.Position, err error) {
	where, args := ``, []any(nil)
	if from != nil {
		where, args = ` AND (t.clock, t.micros) <= (?, ?)`, []any{from.Stamp.Clock, from.Stamp.Micros}
	}
	err = tables.EachRow(ctx, d.read, `SELECT t.clock, t.micros, t.origin, t.id, e.body
		FROM tasks t INDEXED BY tasks_by_clock JOIN events e USING (task) WHERE (t.final > 0 OR t.lost IS NOT NULL)`+where+`
		ORDER BY t.clock DESC, t.micros DESC`, args, func(rows *sql.Rows) error {
		var p state.Position
		var origin int64
		var key any
		var body []byte
		if err := rows.Scan(&p.Stamp.Clock, &p.Stamp.Micros, &origin, &key, &body); err != nil {
			return err
		}
		p.ID = idText(key)
		if left == nil {
			if omit, err := f(p, body); err != nil || !omit {
				return err
			}
		}
		p.Stamp.Origin = d.symbols.text(origin)
		switch {
		case left == nil:
			left = &p
		case !tables.SameMoment(p, *left):
			return errStop
		case p.Compare(*left) > 0:
			left = &p
		}
		return nil
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return left, err
}

// restoreJournal reads entry by entry, so that f can read the store meanwhile: in memory it has a single connection.
func (d *DB) restoreJournal(
	ctx context.Context, counted uint64, f func(entry uint64, events []byte, checkpointed bool) error,
) error {
	var entries []uint64
	err := tables.EachRow(ctx, d.read, `SELECT entry FROM journal ORDER BY entry`, nil, func(rows *sql.Rows) error {
		entries = append(entries, 0)
		return rows.Scan(&entries[len(entries)-1])
	})
	if err != nil {
		return err
	}
	for _, entry := range entries {
		var body []byte
		if err := d.read.QueryRowContext(ctx, `SELECT body FROM journal WHERE entry = ?`, entry).Scan(&body); err != nil {
			return err
		}
		if err := f(entry, body, entry <= counted); err != nil {
			return err
		}
	}
	return nil
}
