package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
)

// Task returns the events of a task as they were saved.
func (d *DB) Task(ctx context.Context, id string) ([]byte, error) {
	var events []byte
	err := d.read.QueryRowContext(ctx,
		`SELECT e.body FROM tasks t JOIN events e USING (task) WHERE t.id = ?`, idValue(id)).Scan(&events)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, history.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read task: %w", explain(err))
	}
	return events, nil
}

// Children returns the ids of the tasks whose parent is id, at most limit, by stamp.
func (d *DB) Children(ctx context.Context, id string, limit int) ([]string, error) {
	keys, err := list[any](ctx, d.read, `SELECT t.id FROM tasks t JOIN symbols o ON o.symbol = t.origin
		WHERE t.parent = ? ORDER BY t.clock, t.micros, o.text, t.id LIMIT ?`, idValue(id), limit)
	if err != nil {
		return nil, fmt.Errorf("read children: %w", explain(err))
	}
	ids := make([]string, len(keys))
	for i, key := range keys {
		ids[i] = idText(key)
	}
	return ids, nil
}

// idValue returns an id as it is stored: 16 bytes for a UUID in Python's form, else its text.
func idValue(id string) any {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[18] != '-' || id[23] != '-' {
		return id
	}
	key := make([]byte, 0, 16)
	for i := 0; i < len(id); {
		if id[i] == '-' {
			i++
		}
		high, low := nibble(id[i]), nibble(id[i+1])
		if high > 15 || low > 15 {
			return id
		}
		key = append(key, high<<4|low)
		i += 2
	}
	return key
}

// nibble returns the value of a lower-case hexadecimal digit, more than 15 if it is none.
func nibble(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	default:
		return 0xff
	}
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
		b := make([]byte, 0, 36)
		for i, end := range [...]int{4, 6, 8, 10, 16} {
			if i > 0 {
				b = append(b, '-')
			}
			b = hex.AppendEncode(b, k[[...]int{0, 4, 6, 8, 10}[i]:end])
		}
		return string(b)
	default:
		return ""
	}
}
