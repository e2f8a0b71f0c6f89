package sqlite

import (
	"context"
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

var _ history.Editor = (*DB)(nil)

// metaEdit is the key of the table meta for how far an Edit came.
const metaEdit = "edit"

// PlanEdit implements history.Editor.
func (d *DB) PlanEdit(ctx context.Context, e history.Edit, progress func(history.Edited)) (history.Edited, error) {
	return tables.PlanEdit(ctx, tableEngine{d}, d.editSteps(), e, progress)
}

// Edit implements history.Editor. The last step copies the file, which takes as much space for temporary files.
func (d *DB) Edit(ctx context.Context, e history.Edit, by history.AuditRecord, progress func(history.Edited)) (history.Edited, error) {
	return tables.RunEdit(ctx, tableEngine{d}, d.editSteps(), e, by, progress)
}

func (d *DB) editSteps() tables.EditSteps {
	return tables.EditSteps{
		Rows: `SELECT tasks.task, id, body FROM tasks JOIN events USING (task)`,
		ID:   idText,
		Tasks: func(t tables.Tx, list []tables.EditedTask) error {
			for i := range list {
				if err := t.(tableTx).edit(list[i].Key, &list[i].View, list[i].Events); err != nil { //nolint:forcetypeassert // of tableEngine
					return err
				}
			}
			return nil
		},
		Audit: func(t tables.Tx) (func() error, error) {
			const trigger = `audit_unchanged`
			var create string
			if err := t.Get(`SELECT sql FROM sqlite_schema WHERE name = ?`, []any{trigger}, &create); err != nil {
				return nil, err
			}
			return func() error { return t.Exec(create) }, t.Exec(`DROP TRIGGER ` + trigger)
		},
		Load: func(ctx context.Context) (string, error) {
			return tables.Number[string](ctx, d.read, `SELECT coalesce((SELECT value FROM meta WHERE key = ?), '')`, metaEdit)
		},
		Save: func(t tables.Tx, position string) error {
			return t.Exec(`INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value`, metaEdit, position)
		},
		Finish: d.endEdit,
	}
}

// endEdit removes what an edit has left.
func (d *DB) endEdit(ctx context.Context) error {
	if err := d.sweepFailures(ctx); err != nil {
		return err
	}
	err := d.update(ctx, func(t *tx) error {
		if err := t.forgetTexts(); err != nil {
			return err
		}
		return t.exec(`DELETE FROM meta WHERE key = ?`, metaEdit)
	})
	if err == nil {
		err = d.vacuum(ctx)
	}
	return err
}

// edit writes a task whose texts have changed.
func (t *tx) edit(id any, v *state.Task, events []byte) error {
	old, err := t.stored(id)
	if err != nil {
		return err
	}
	call, err := t.callOf(v, nil)
	if err != nil {
		return err
	}
	p, err := t.prepare(call, &old.callRow)
	if err != nil {
		return err
	}
	failure, err := t.failure(v)
	if err != nil {
		return err
	}
	if err := t.exec(`UPDATE tasks SET failure = ?, call = ?, dup = ? WHERE task = ?`, failure, p.call, p.dup, old.task); err != nil {
		return err
	}
	if err := t.regroup(&p, &old.callRow); err != nil {
		return err
	}
	return t.exec(`UPDATE events SET body = ? WHERE task = ?`, events, old.task)
}

// vacuum writes the file anew, so that no free space has what was deleted, and empties its log.
func (d *DB) vacuum(ctx context.Context) error {
	select {
	case d.writer <- struct{}{}:
		defer func() { <-d.writer }()
	case <-ctx.Done():
		return ctx.Err()
	}
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // returns it to its pool
	for _, statement := range []string{
		`PRAGMA temp_store = FILE`, `VACUUM`, `PRAGMA temp_store = MEMORY`, `PRAGMA wal_checkpoint(TRUNCATE)`,
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, explain(err))
		}
	}
	return nil
}
