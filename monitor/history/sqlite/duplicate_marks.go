package sqlite

import (
	"context"
	"database/sql"
	"strings"

	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

// MarkDuplicates sets what is known of tasks beside their events, at most maxPage of them.
func (d *DB) MarkDuplicates(ctx context.Context, tasks []state.Task) (err error) {
	defer annotate(&err, "mark duplicates")
	tasks = tasks[:min(len(tasks), maxPage)]
	if len(tasks) == 0 {
		return nil
	}
	places, ids := make(map[string]int, len(tasks)), make([]any, len(tasks))
	for i := range tasks {
		places[tasks[i].ID], ids[i] = i, idValue(tasks[i].ID)
	}
	query := `SELECT id, dup, call FROM tasks WHERE id IN (?` + strings.Repeat(`, ?`, len(ids)-1) + `)`
	return tables.EachRow(ctx, d.read, query, ids, func(rows *sql.Rows) error {
		var id any
		var dup int64
		var call sql.RawBytes
		if err := rows.Scan(&id, &dup, &call); err != nil {
			return err
		}
		if i, ok := places[idText(id)]; ok {
			tasks[i].CallID, tasks[i].Duplicates = callID(call), state.Duplicates(dup)
		}
		return nil
	})
}
