package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

const (
	sweepInterval   = time.Hour
	symbolSweeps    = 24  // sweeps between searches for unused symbols, which read all tasks
	maxSweptSymbols = 500 // removed in one transaction
)

// sweepLoop removes unreferenced rows until ctx ends: failure groups now and every hour, symbols after an hour and then
// every day.
func (d *DB) sweepLoop(ctx context.Context) error {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for n := 0; ; n++ {
		err := d.sweepFailures(ctx)
		if err == nil && n%symbolSweeps == 1 {
			err = d.sweepSymbols(ctx)
		}
		if err != nil && ctx.Err() == nil {
			d.log.WarnContext(ctx, "unreferenced rows not removed", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// symbolQueries returns queries for all references to symbols.
func symbolQueries() []string {
	return []string{
		`SELECT DISTINCT origin FROM tasks`, `SELECT DISTINCT state FROM tasks`, `SELECT DISTINCT name FROM tasks`,
		`SELECT DISTINCT worker FROM tasks`, `SELECT DISTINCT queue FROM tasks`, `SELECT DISTINCT client FROM tasks`,
		`SELECT DISTINCT exchange FROM tasks`, `SELECT DISTINCT routing_key FROM tasks`,
		`SELECT DISTINCT name FROM former_names`,
		`SELECT DISTINCT name FROM duplicates`, `SELECT DISTINCT name FROM ungrouped`, `SELECT DISTINCT name FROM workflows`,
		`SELECT DISTINCT name FROM rollups`, `SELECT DISTINCT worker FROM rollups`, `SELECT DISTINCT queue FROM rollups`,
	}
}

// sweepSymbols removes symbols that nothing refers to. Every client process that sends a task has one.
func (d *DB) sweepSymbols(ctx context.Context) (err error) {
	defer annotate(&err, "remove unused symbols")
	// Symbols that transactions use from now on are recorded; the queries find those used before.
	if err := d.update(ctx, func(*tx) error { d.symbols.recordUse(true); return nil }); err != nil {
		return err
	}
	defer d.symbols.recordUse(false)
	used := make(map[int64]bool)
	for _, query := range symbolQueries() {
		err := tables.EachRow(ctx, d.read, query, nil, func(rows *sql.Rows) error {
			var n sql.NullInt64
			err := rows.Scan(&n)
			used[n.Int64] = true
			return err
		})
		if err != nil {
			return err
		}
	}
	for some := range slices.Chunk(d.symbols.without(used), maxSweptSymbols) {
		err := d.update(ctx, func(t *tx) error {
			for _, n := range some {
				if d.symbols.usedSince(n) {
					continue
				}
				if err := t.exec(`DELETE FROM symbols WHERE symbol = ?`, n); err != nil {
					return err
				}
				t.removed = append(t.removed, n)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
