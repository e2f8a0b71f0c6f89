package sqlite

import (
	"context"
	"testing"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

// SweepSymbols removes symbols that nothing refers to.
func (d *DB) SweepSymbols(ctx context.Context) error { return d.sweepSymbols(ctx) }

// Symbols returns how many there are.
func (d *DB) Symbols(t *testing.T) int {
	t.Helper()
	return d.count(t, `SELECT count(*) FROM symbols`)
}

// Dangling returns how many tasks have a client that is no symbol.
func (d *DB) Dangling(t *testing.T) int {
	t.Helper()
	return d.count(t, `SELECT count(*) FROM tasks WHERE client NOT IN (SELECT symbol FROM symbols)`)
}

// Remove removes a task.
func (d *DB) Remove(t *testing.T, id string) {
	t.Helper()
	err := d.update(t.Context(), func(t *tx) error {
		if err := t.exec(`DELETE FROM events WHERE task = (SELECT task FROM tasks WHERE id = ?)`, idValue(id)); err != nil {
			return err
		}
		return t.exec(`DELETE FROM tasks WHERE id = ?`, idValue(id))
	})
	if err != nil {
		t.Error(err)
	}
}

func (d *DB) count(t *testing.T, query string) int {
	t.Helper()
	found, err := tables.List[int](t.Context(), d.read, query)
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}
