package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

// NumberedTask is a task with its number, in the order in which tasks were first saved.
type NumberedTask struct {
	history.Task

	Number int64
}

// TasksAfter returns the next tasks after a number, as they are written anew.
func (d *DB) TasksAfter(ctx context.Context, number int64, limit int) (list []NumberedTask, err error) {
	defer annotate(&err, "read tasks")
	var reader state.Reader
	err = tables.EachRow(ctx, d.read, `SELECT task, id, coalesce(first_receipt, 0), coalesce(last_receipt, 0), body FROM tasks JOIN events USING (task)
		WHERE task > ? ORDER BY task LIMIT ?`, []any{number, limit}, func(rows *sql.Rows) error {
		var t NumberedTask
		var id any
		if err := rows.Scan(&t.Number, &id, &t.FirstReceipt, &t.ReceivedAt, &t.Events); err != nil {
			return err
		}
		var err error
		if t.View, err = reader.Task(idText(id), t.Events); err != nil {
			d.log.Warn("events of a task are unreadable", "id", idText(id), "error", err)
			t.View = state.Task{ID: idText(id)}
		}
		list = append(list, t)
		return nil
	})
	return list, err
}

// EachRow calls f with the values of the rows of a table. Columns that it does not have are left out, and nil.
func (d *DB) EachRow(ctx context.Context, table string, columns []string, f func(values []any) error) (err error) {
	defer annotate(&err, "read %s", table)
	has, err := tables.List[string](ctx, d.read, `SELECT name FROM pragma_table_info(?)`, table)
	if err != nil {
		return err
	}
	selected := make([]string, len(columns))
	for i, c := range columns {
		if selected[i] = `NULL`; slices.Contains(has, c) {
			selected[i] = c
		}
	}
	return tables.EachRow(ctx, d.read, `SELECT `+strings.Join(selected, `, `)+` FROM `+table, nil, func(rows *sql.Rows) error {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		return f(values)
	})
}

// CountTasks returns how many tasks there are.
func (d *DB) CountTasks(ctx context.Context) (int, error) {
	return tables.Number[int](ctx, d.read, `SELECT count(*) FROM tasks`)
}
