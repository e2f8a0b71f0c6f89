package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
)

// metaCopied is, while a history is copied here, the number of the last task that was.
const metaCopied = "copied"

// ErrNotEmpty says that a database cannot take a copy.
var ErrNotEmpty = errors.New("the database holds a history already: copy to an empty one")

// refuseUnfinished returns an error if a copy was begun and not ended, unless it is to go on.
func (d *DB) refuseUnfinished(ctx context.Context) error {
	if d.copying {
		return nil
	}
	var begun bool
	var schema string
	err := d.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM meta WHERE key = $1), quote_ident(current_schema())`, metaCopied).Scan(&begun, &schema)
	if err == nil && begun {
		err = fmt.Errorf("a history was copied here in part: give umbel history copy the same directory and address again, which goes on, "+
			"or discard what was copied by DROP SCHEMA %s CASCADE", schema)
	}
	return err
}

// BeginCopy prepares to take a copy of another history. It returns the number of the last task that an earlier call has
// copied.
func (d *DB) BeginCopy(ctx context.Context) (last int64, err error) {
	defer annotate(&err, "begin copy")
	err = d.update(ctx, func(t *tx) error {
		err := t.Get(`SELECT value FROM meta WHERE key = $1`, []any{metaCopied}, &last)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		var used bool
		err = t.Get(`SELECT EXISTS (SELECT 1 FROM tasks) OR EXISTS (SELECT 1 FROM audit) OR EXISTS (SELECT 1 FROM journal) OR EXISTS (SELECT 1 FROM meta)`, nil, &used)
		if err == nil && used {
			err = ErrNotEmpty
		}
		if err == nil {
			err = t.set(metaCopied, 0)
		}
		return err
	})
	return last, err
}

// CopyTasks writes tasks, the last of which has a number.
func (d *DB) CopyTasks(ctx context.Context, number int64, tasks []history.Task) (err error) {
	defer annotate(&err, "copy tasks")
	return d.update(ctx, func(t *tx) error {
		if _, err := t.write(history.Batch{Tasks: tasks}); err != nil {
			return err
		}
		return t.set(metaCopied, number)
	})
}

// CopyRollups writes rollups of a span, in minutes, unless there are any.
func (d *DB) CopyRollups(ctx context.Context, span int64, read func(f func(history.Rollup) error) error) (int, error) {
	return d.copyRows(ctx, "rollups", fmt.Sprintf(`span = %d`, span), func(columns []string, f func(values []any) error) error {
		return read(func(m history.Rollup) error {
			values := make([]any, len(columns))
			for i, c := range columns {
				values[i] = map[string]any{
					"span": span, "at": m.At, "name": m.Name, "worker": m.Worker, "queue": m.Queue, "received": m.Received, "succeeded": m.Succeeded,
					"failed": m.Failed, "retried": m.Retried, "wait": append([]byte(nil), m.Wait...), "run": append([]byte(nil), m.Run...),
				}[c]
			}
			return f(values)
		})
	})
}

// CopyTable writes the rows of a table that read finds, unless it has any: all of them at once, so that what is interrupted is begun anew.
func (d *DB) CopyTable(ctx context.Context, table string, read func(columns []string, f func(values []any) error) error) (int, error) {
	return d.copyRows(ctx, table, `TRUE`, read)
}

// atOnce is how many rows one COPY takes.
const atOnce = 5_000

func (d *DB) copyRows(ctx context.Context, table, where string, read func(columns []string, f func(values []any) error) error) (n int, err error) {
	defer annotate(&err, "copy %s", table)
	err = d.update(ctx, func(t *tx) error {
		var done bool
		if err := t.Get(`SELECT EXISTS (SELECT 1 FROM `+table+` WHERE `+where+`)`, nil, &done); err != nil || done {
			return err
		}
		columns, kinds, identity, err := t.columnsOf(table)
		if err != nil {
			return err
		}
		var rows [][]any
		flush := func() error {
			n += len(rows)
			err := t.raw(func(ctx context.Context, c *pgx.Conn) error {
				_, err := c.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows))
				return err
			})
			rows = nil
			return err
		}
		err = read(columns, func(values []any) error {
			for i := range values {
				values[i] = valueOf(kinds[i], values[i])
			}
			if rows = append(rows, values); len(rows) < atOnce {
				return nil
			}
			return flush()
		})
		if err == nil && len(rows) > 0 {
			err = flush()
		}
		if err == nil && n > 0 && identity != "" {
			err = t.Exec(fmt.Sprintf(`SELECT setval(pg_get_serial_sequence('%s', '%s'), (SELECT max(%s) FROM %s))`, table, identity, identity, table))
		}
		return err
	})
	return n, err
}

// columnsOf returns the columns of a table with their types, and the one that numbers its rows, if there is one.
func (t *tx) columnsOf(table string) (columns, kinds []string, identity string, err error) {
	err = t.Each(`SELECT column_name::text, data_type::text, is_identity = 'YES' FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position`, []any{table}, func(rows *sql.Rows) error {
		var column, kind string
		var numbers bool
		err := rows.Scan(&column, &kind, &numbers)
		columns, kinds = append(columns, column), append(kinds, kind)
		if numbers {
			identity = column
		}
		return err
	})
	return columns, kinds, identity, err
}

// valueOf returns a value of SQLite as one of a type.
func valueOf(kind string, v any) any {
	switch x := v.(type) {
	case []byte:
		if kind == "text" {
			return encodeText(string(x))
		}
	case string:
		if kind == "bytea" {
			return []byte(x)
		}
		return encodeText(x)
	case int64:
		switch kind {
		case "boolean":
			return x != 0
		case "double precision":
			return float64(x)
		}
	}
	return v
}

// EndCopy completes a copy: the rest of the state of the monitor, and what follows from what was copied.
func (d *DB) EndCopy(ctx context.Context, c history.Checkpoint, counted uint64) (err error) {
	defer annotate(&err, "end copy")
	return d.update(ctx, func(t *tx) error {
		if err := t.Exec(`UPDATE audit_end SET record = (SELECT coalesce(max(record), 0) FROM audit)`); err != nil {
			return err
		}
		for key, value := range map[string]int64{tables.MetaBatchAt: c.At, tables.MetaClock: c.Clock, tables.MetaCheckpoint: int64(counted)} {
			if err := t.set(key, value); err != nil {
				return err
			}
		}
		return t.Exec(`DELETE FROM meta WHERE key = $1`, metaCopied)
	})
}
