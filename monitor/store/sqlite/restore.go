package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/state"
)

// Restore reads what a monitor needs to begin where the last one ended.
func (d *DB) Restore(ctx context.Context, r store.Restore) error {
	var counted uint64
	for _, step := range []func() error{
		func() error { return d.restoreCheckpoint(ctx, &counted, r.Checkpoint) },
		func() error { return d.restoreTasks(ctx, `final = 0`, -1, 0, r.Task) },
		func() error { return d.restoreTasks(ctx, `final > 0`, r.MaxTasks, 0, r.Task) },
		func() error { return d.restoreLeft(ctx, r) },
		func() error { return d.restoreJournal(ctx, counted, r.Journal) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("restore history: %w", explain(err))
		}
	}
	return nil
}

func (d *DB) restoreCheckpoint(ctx context.Context, counted *uint64, f func(store.Checkpoint) error) error {
	c := store.Checkpoint{Workers: make(map[string][]byte)}
	for key, into := range map[string]any{metaClock: &c.Clock, metaCheckpoint: counted} {
		err := d.read.QueryRowContext(ctx, `SELECT value FROM meta WHERE key = ?`, key).Scan(into)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	err := d.each(ctx, `SELECT name, body FROM workers ORDER BY name`, nil, func(rows *sql.Rows) error {
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

// each calls f with every row of a query. f must not use the store.
func (d *DB) each(ctx context.Context, query string, args []any, f func(rows *sql.Rows) error) error {
	rows, err := d.read.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// restoreTasks reads the newest limit tasks of a class, after the newest skip.
func (d *DB) restoreTasks(ctx context.Context, class string, limit, skip int, f func(id string, events []byte) error) error {
	return d.each(ctx, `SELECT t.id, e.body FROM tasks t JOIN events e USING (task) WHERE `+class+`
		ORDER BY t.clock DESC, t.micros DESC LIMIT ? OFFSET ?`, []any{limit, skip}, func(rows *sql.Rows) error {
		var key any
		var body []byte
		if err := rows.Scan(&key, &body); err != nil {
			return err
		}
		return f(idText(key), body)
	})
}

func (d *DB) restoreLeft(ctx context.Context, r store.Restore) error {
	var left *state.Position
	err := d.each(ctx, `SELECT t.clock, t.micros, t.origin, t.id FROM tasks t
		WHERE final > 0 ORDER BY clock DESC, micros DESC LIMIT 1 OFFSET ?`, []any{r.MaxTasks}, func(rows *sql.Rows) error {
		var p state.Position
		var key any
		var origin int64
		err := rows.Scan(&p.Stamp.Clock, &p.Stamp.Micros, &origin, &key)
		p.Stamp.Origin, p.ID = d.symbols.text(origin), idText(key)
		left = &p
		return err
	})
	if err != nil || left == nil {
		return err
	}
	return r.Left(*left)
}

func (d *DB) restoreJournal(ctx context.Context, counted uint64, f func(entry uint64, events []byte, checkpointed bool) error) error {
	return d.each(ctx, `SELECT entry, body FROM journal ORDER BY entry`, nil, func(rows *sql.Rows) error {
		var entry uint64
		var body []byte
		if err := rows.Scan(&entry, &body); err != nil {
			return err
		}
		return f(entry, body, entry <= counted)
	})
}
