package sqlite

import (
	"context"
	"database/sql"

	"github.com/umbelhq/umbel/monitor/history"
)

// Exec runs a statement on the connection that writes.
func (d *DB) Exec(ctx context.Context, statement string) error {
	return d.update(ctx, func(t *tx) error { return t.exec(statement) })
}

// ExplainOutbox returns how SQLite carries out what relays and lists of commands ask, by query.
func (d *DB) ExplainOutbox(ctx context.Context) (map[string][]string, error) {
	type query struct {
		text string
		args []any
	}
	queries := []query{
		{claimableGroups, []any{1, 2, 3}},
		{`SELECT command FROM outbox ` + firstOfGroup, []any{1, "a", 3}},
		{expireCommands, []any{1, 2}},
	}
	for _, f := range []history.CommandFilter{
		{Before: 5},
		{States: []history.CommandState{history.CommandDone}},
		{States: []history.CommandState{history.CommandPending, history.CommandInFlight}},
		{Kind: "task"},
		{TaskID: "t"},
		{Actor: "ann"},
		{RequestID: 4},
	} {
		text, args := filterCommands(f)
		queries = append(queries, query{text + ` ORDER BY command DESC LIMIT 10`, args})
	}
	plans := make(map[string][]string)
	for _, q := range queries {
		err := eachRow(ctx, d.read, `EXPLAIN QUERY PLAN `+q.text, q.args, func(rows *sql.Rows) error {
			var id, parent, unused int
			var detail string
			err := rows.Scan(&id, &parent, &unused, &detail)
			plans[q.text] = append(plans[q.text], detail)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return plans, nil
}
