package sqlite

import (
	"context"
	"database/sql"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

// LimitFailures bounds how many groups there are, and how far the tasks of each are counted.
func (d *DB) LimitFailures(groups, each int) { d.limits.groups, d.limits.failures = groups, each }

// SweepFailures removes groups that are over.
func (d *DB) SweepFailures(ctx context.Context) error { return d.sweepFailures(ctx) }

// ExplainFailures returns how SQLite reads tasks for groups of failures, by what is read.
func (d *DB) ExplainFailures(ctx context.Context) (map[string][]string, error) {
	plans := map[string][]string{}
	for what, query := range map[string]struct {
		sql  string
		args []any
	}{
		"groups": {selectGroups(lastHour, within), []any{1, 2, 3, 4}},
		"group":  {selectGroup, []any{1, 2, 3}},
		"trends": {selectTrends, []any{1, 2, 3, 4, "[5]"}},
	} {
		err := tables.EachRow(ctx, d.read, "EXPLAIN QUERY PLAN "+query.sql, query.args, func(rows *sql.Rows) error {
			var id, parent, unused int
			var detail string
			err := rows.Scan(&id, &parent, &unused, &detail)
			plans[what] = append(plans[what], detail)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return plans, nil
}
