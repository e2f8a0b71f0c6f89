package sqlite

import (
	"context"
	"database/sql"

	"github.com/umbelhq/umbel/monitor/history"
)

// OrderStates implements history.Outbox.
func (d *DB) OrderStates(ctx context.Context, order int64) (map[history.CommandState]int, error) {
	counts := make(map[history.CommandState]int)
	err := eachOf(ctx, d.read, `SELECT state, count(*) FROM outbox WHERE first = ? GROUP BY state`, []any{order},
		func(rows *sql.Rows) error {
			var s history.CommandState
			var n int
			err := rows.Scan(&s, &n)
			counts[s] = n
			return err
		})
	if err != nil {
		return nil, wrap("count commands of an order", explain(err))
	}
	return counts, nil
}
