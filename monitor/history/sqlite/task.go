package sqlite

import (
	"context"

	"github.com/umbelhq/umbel/internal/uuidtext"
	"github.com/umbelhq/umbel/monitor/history/tables"
)

// Task returns the events of a task as they were saved.
func (d *DB) Task(ctx context.Context, id string) (events []byte, err error) {
	defer annotate(&err, "read task")
	err = d.read.QueryRowContext(ctx,
		`SELECT e.body FROM tasks t JOIN events e USING (task) WHERE t.id = ?`, idValue(id)).Scan(&events)
	return events, tables.NotFound(err)
}

// Children returns the ids of the tasks whose parent is id, at most limit, by stamp.
func (d *DB) Children(ctx context.Context, id string, limit int) (ids []string, err error) {
	defer annotate(&err, "read children")
	keys, err := tables.List[any](ctx, d.read, `SELECT t.id FROM tasks t JOIN symbols o ON o.symbol = t.origin
		WHERE t.parent = ? ORDER BY t.clock, t.micros, o.text, t.id LIMIT ?`, idValue(id), limit)
	for _, key := range keys {
		ids = append(ids, idText(key))
	}
	return ids, err
}

// idValue returns an id as it is stored: 16 bytes for a UUID in Python's form, else its text.
func idValue(id string) any {
	if b, ok := uuidtext.Parse(id); ok {
		return b[:]
	}
	return id
}

// idText returns the id that idValue has encoded.
func idText(key any) string {
	switch k := key.(type) {
	case string:
		return k
	case []byte:
		if len(k) != 16 {
			return ""
		}
		b := uuidtext.Format([16]byte(k))
		return string(b[:])
	default:
		return ""
	}
}
