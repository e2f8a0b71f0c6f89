package postgres

import (
	"context"
	"database/sql"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
)

// Ask asks the node that leads for something, now or when there is one.
func (d *DB) Ask(ctx context.Context, r history.NodeRequest) (err error) {
	defer annotate(&err, "ask the node that leads")
	return d.updateSmall(ctx, func(t *tx) error {
		if r.Events != nil {
			return t.Exec(`INSERT INTO requests (events) VALUES ($1)`, r.Events)
		}
		return t.Exec(`INSERT INTO requests (task, dismissed, who) VALUES ($1, $2, $3)`, r.Task, r.Dismiss, r.Who)
	})
}

// Asked returns the oldest of what nodes have asked for, at most limit, in their order.
func (d *DB) Asked(ctx context.Context, limit int) (list []history.NodeRequest, err error) {
	defer annotate(&err, "read what nodes ask for")
	const query = `SELECT request, events, coalesce(task, ''), coalesce(dismissed, false), coalesce(who, '') FROM requests ORDER BY request LIMIT $1`
	err = tables.EachRow(ctx, d.read, query, []any{limit}, func(rows *sql.Rows) error {
		var r history.NodeRequest
		err := rows.Scan(&r.Number, &r.Events, &r.Task, &r.Dismiss, &r.Who)
		list = append(list, r)
		return err
	})
	return list, err
}

// Answered removes what nodes have asked for.
func (d *DB) Answered(ctx context.Context, numbers []int64) (err error) {
	defer annotate(&err, "note what nodes have asked for as done")
	return d.updateSmall(ctx, func(t *tx) error { return t.Exec(`DELETE FROM requests WHERE request = ANY($1)`, numbers) })
}
