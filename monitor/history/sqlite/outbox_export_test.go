package sqlite

import (
	"context"
	"database/sql"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

// Exec runs a statement on the connection that writes.
func (d *DB) Exec(ctx context.Context, statement string) error {
	return d.update(ctx, func(t *tx) error { return t.exec(statement) })
}

// ExplainOutbox returns how SQLite carries out what relays and lists of commands ask, by query.
func (d *DB) ExplainOutbox(ctx context.Context) (map[string][]string, error) {
	plans := make(map[string][]string)
	for _, q := range tables.OutboxQueries(tables.SQLite()) {
		err := tables.EachRow(ctx, d.read, `EXPLAIN QUERY PLAN `+q.Text, q.Args, func(rows *sql.Rows) error {
			var id, parent, unused int
			var detail string
			err := rows.Scan(&id, &parent, &unused, &detail)
			plans[q.Text] = append(plans[q.Text], detail)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return plans, nil
}
