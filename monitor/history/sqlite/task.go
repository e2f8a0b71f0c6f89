package sqlite

import (
	"context"
	"encoding/hex"
)

// Task returns the events of a task as they were saved.
func (d *DB) Task(ctx context.Context, id string) (events []byte, err error) {
	defer annotate(&err, "read task")
	err = d.read.QueryRowContext(ctx,
		`SELECT e.body FROM tasks t JOIN events e USING (task) WHERE t.id = ?`, idValue(id)).Scan(&events)
	return events, notFound(err)
}

// Children returns the ids of the tasks whose parent is id, at most limit, by stamp.
func (d *DB) Children(ctx context.Context, id string, limit int) (ids []string, err error) {
	defer annotate(&err, "read children")
	keys, err := list[any](ctx, d.read, `SELECT t.id FROM tasks t JOIN symbols o ON o.symbol = t.origin
		WHERE t.parent = ? ORDER BY t.clock, t.micros, o.text, t.id LIMIT ?`, idValue(id), limit)
	for _, key := range keys {
		ids = append(ids, idText(key))
	}
	return ids, err
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
