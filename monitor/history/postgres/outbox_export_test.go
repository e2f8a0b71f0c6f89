package postgres

import (
	"context"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

// ExplainOutbox returns how PostgreSQL carries out what relays and lists of commands ask, by query.
func (d *DB) ExplainOutbox(ctx context.Context) (map[string][]string, error) {
	plans := make(map[string][]string)
	for _, q := range tables.OutboxQueries(tables.PostgreSQL()) {
		plan, err := tables.List[string](ctx, d.write, `EXPLAIN `+q.Text, q.Args...)
		if err != nil {
			return nil, err
		}
		plans[q.Text] = plan
	}
	return plans, nil
}

// Exec runs a statement on the connection that writes.
func (d *DB) Exec(ctx context.Context, statement string) error {
	return d.update(ctx, func(t *tx) error { return t.Exec(statement) })
}

// CountRows returns how many rows hold the numbers of commands by state.
func (d *DB) CountRows(ctx context.Context) (int, error) {
	return tables.Number[int](ctx, d.read, `SELECT count(*) FROM outbox_counts`)
}
