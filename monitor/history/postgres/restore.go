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
		func() error { return d.restoreCheckpoint(ctx, &counted, r.Checkpoint) },
		func() error {
			return eachTask(ctx, d.read, `SELECT id, body FROM tasks WHERE week = 0 ORDER BY clock DESC, micros DESC`, nil, r.Task)
		},
		func() error { return d.restoreFinished(ctx, r) },
		func() error { return d.restoreJournal(ctx, counted, r.Journal) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("restore history: %w", explain(err))
		}
	}
	return nil
}

func (d *DB) restoreCheckpoint(ctx context.Context, counted *uint64, f func(history.Checkpoint) error) error {
	c := history.Checkpoint{Workers: make(map[string][]byte)}
	for key, into := range map[string]any{metaBatchAt: &c.At, metaClock: &c.Clock, metaCheckpoint: counted} {
		err := d.read.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = $1`, key).Scan(into)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	err := tables.EachRow(ctx, d.read, `SELECT name, body FROM workers ORDER BY name`, nil, func(rows *sql.Rows) error {
		var name, body string
		err := rows.Scan(&name, &body)
		c.Workers[name] = []byte(body)
		return err
	})
	if err != nil {
		return err
	}
	return f(c)
}

// restoreFinished reads the newest finished and lost tasks, and finds the newest of those that it omits.
func (d *DB) restoreFinished(ctx context.Context, r history.RestoreOptions) error {
	n, err := d.tasksToRestore(ctx, r)
	if err != nil {
		return err
	}
	left, err := d.finished(ctx, nil, n, func(p state.Position, body []byte) (omit bool, err error) {
		if n == 0 {
			return true, nil
		}
		n--
		return false, r.Task(p.ID, body)
	})
	if err != nil || left == nil {
		return err
	}
	return r.Omitted(*left)
}

// journaledTask is about what the events of a task take in the journal.
const journaledTask = 300

// tasksToRestore returns how many finished and lost tasks are to be read.
func (d *DB) tasksToRestore(ctx context.Context, r history.RestoreOptions) (int, error) {
	if r.MaxWithJournal <= r.MaxTasks {
		return r.MaxTasks, nil
	}
	size, err := tables.Number[int](ctx, d.read, `SELECT coalesce(sum(length(body)), 0) FROM journal`)
	return min(max(r.MaxTasks, size/journaledTask), r.MaxWithJournal), err
}

// RestoreMore reads finished and lost tasks that Restore has omitted.
func (d *DB) RestoreMore(ctx context.Context, from state.Position, limit int) (tasks []history.SavedTask, left *state.Position, err error) {
	defer annotate(&err, "restore more of the history")
	var last state.Position
	left, err = d.finished(ctx, &from, limit, func(p state.Position, body []byte) (omit bool, err error) {
		if len(tasks) >= limit && !sameMoment(p, last) {
			return true, nil
		}
		tasks, last = append(tasks, history.SavedTask{ID: p.ID, Events: body}), p
		return false, nil
	})
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
		if read == size && sameMoment(positions[min(n, read-1)], positions[read-1]) {
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

// sameMoment reports whether two positions are of one moment.
func sameMoment(a, b state.Position) bool {
	return a.Stamp.Clock == b.Stamp.Clock && a.Stamp.Micros == b.Stamp.Micros
}

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
