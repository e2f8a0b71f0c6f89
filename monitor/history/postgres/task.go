package postgres

import (
	"context"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

// Task returns the events of a task as they were saved.
func (d *DB) Task(ctx context.Context, id string) (events []byte, err error) {
	defer annotate(&err, "read task")
	err = d.read.QueryRowContext(ctx, `SELECT body FROM tasks WHERE id = $1`, id).Scan(&events)
	return events, tables.NotFound(err)
}

// Children returns the ids of the tasks whose parent is id, at most limit, by stamp.
func (d *DB) Children(ctx context.Context, id string, limit int) (ids []string, err error) {
	defer annotate(&err, "read children")
	return tables.List[string](ctx, d.read, `SELECT id FROM tasks WHERE parent = $1 ORDER BY clock, micros, origin, id LIMIT $2`, id, limit)
}
