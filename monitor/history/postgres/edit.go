package postgres

import (
	"context"
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
)

var _ history.Editor = (*DB)(nil)

// PlanEdit implements history.Editor.
func (d *DB) PlanEdit(ctx context.Context, e history.Edit, progress func(history.Edited)) (history.Edited, error) {
	return tables.PlanEdit(ctx, tableEngine{d}, d.editSteps(), e, progress)
}

// Edit implements history.Editor. What the write-ahead log, replicas and backups have stays there.
func (d *DB) Edit(ctx context.Context, e history.Edit, by history.AuditRecord, progress func(history.Edited)) (history.Edited, error) {
	return tables.RunEdit(ctx, tableEngine{d}, d.editSteps(), e, by, progress)
}

func (d *DB) editSteps() tables.EditSteps {
	return tables.EditSteps{
		Rows: `SELECT task, id, body FROM tasks`,
		ID: func(key any) string {
			id, _ := key.(string)
			return id
		},
		Tasks: func(t tables.Tx, list []tables.EditedTask) error { return t.(*tx).edit(list) }, //nolint:forcetypeassert // of tableEngine
		Audit: func(t tables.Tx) (func() error, error) {
			enable := func() error { return t.Exec(`ALTER TABLE audit ENABLE TRIGGER audit_unchanged`) }
			return enable, t.Exec(`ALTER TABLE audit DISABLE TRIGGER audit_unchanged`)
		},
		Load: func(ctx context.Context) (string, error) {
			return tables.Number[string](ctx, d.read, `SELECT coalesce((SELECT position FROM edit), '')`)
		},
		Save: func(t tables.Tx, position string) error {
			if err := t.Exec(`DELETE FROM edit`); err != nil {
				return err
			}
			return t.Exec(`INSERT INTO edit (position) VALUES (?)`, position)
		},
		Finish: d.endEdit,
	}
}

// edit writes tasks whose texts have changed.
func (t *tx) edit(list []tables.EditedTask) error {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].View.ID
	}
	old, err := t.stored(ids)
	if err != nil {
		return err
	}
	var records []record
	for i := range list {
		s := old[ids[i]]
		if s == nil {
			return fmt.Errorf("task %s is gone", ids[i])
		}
		task := &history.Task{View: list[i].View, Events: list[i].Events, Stored: true}
		r := record{Task: task, receipt: receiptsOf(task, s)}
		r.call.task = s.task
		records = append(records, r)
	}
	if err := t.findCalls(records); err != nil { // without what was stored, since a digest lets a secret be guessed
		return err
	}
	for i := range records {
		records[i].old = old[ids[i]]
	}
	if err := t.findFailures(records); err != nil {
		return err
	}
	return t.save(records)
}

// endEdit removes what an edit has left, and writes all tables anew, since deleted rows stay in them.
func (d *DB) endEdit(ctx context.Context) error {
	if err := d.sweepFailures(ctx); err != nil {
		return err
	}
	if err := d.update(ctx, func(t *tx) error { return t.Exec(`DELETE FROM edit`) }); err != nil {
		return err
	}
	list, err := tables.List[string](ctx, d.read, `SELECT quote_ident(relname) FROM pg_class
		WHERE relkind = 'r' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'tasks'::regclass)`)
	for _, name := range list {
		if err == nil {
			_, err = d.read.ExecContext(ctx, `VACUUM (FULL) `+name)
		}
	}
	return err
}
