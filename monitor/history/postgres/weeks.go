package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
)

const weekLength = int64(7 * 24 * time.Hour / time.Microsecond)

// weekOf returns the partition of a task that was last received at a time: 0 while it is active. No wrong clock makes a
// partition of the future.
func (d *DB) weekOf(v *state.Task, lastReceipt int64) int {
	if !v.State.Final() && where.LostAt(v) == nil {
		return 0
	}
	return int(max(1, min(lastReceipt, d.now().UnixMicro()+weekLength)/weekLength))
}

// loadWeeks finds the partitions.
func (d *DB) loadWeeks(ctx context.Context) error {
	names, err := tables.List[string](ctx, d.write, `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'tasks'::regclass`)
	for _, name := range names {
		var week int
		if n, _ := fmt.Sscanf(name, "tasks_week_%d", &week); n == 1 {
			d.weeks[week] = true
		}
	}
	return err
}

// makeWeek creates the partition of a week if it is not there. It attaches a table that is made before, which stops no reader.
func (t *tx) makeWeek(week int) error {
	if week == 0 || t.db.weeks[week] || t.made[week] {
		return nil
	}
	name := fmt.Sprintf("tasks_week_%d", week)
	text := fmt.Sprintf(`CREATE TABLE %s (LIKE tasks INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE, CHECK (week >= %d AND week < %d))`,
		name, week, week+1)
	if err := t.Exec(text); err != nil {
		return err
	}
	if t.db.trigram != "" {
		if err := t.Exec(fmt.Sprintf(`CREATE INDEX ON %s USING gin (text %s)`, name, t.db.trigram)); err != nil {
			return err
		}
	}
	err := t.Exec(fmt.Sprintf(`ALTER TABLE tasks ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)`, name, week, week+1))
	if t.made == nil {
		t.made = make(map[int]bool)
	}
	t.made[week] = true
	t.Committed(func() { t.db.weeks[week] = true })
	return err
}

// findTrigrams finds, or makes, the extension by which texts are searched by an index.
func (d *DB) findTrigrams(ctx context.Context) error {
	const found = `SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'`
	schemas, err := tables.List[string](ctx, d.write, found)
	if err != nil {
		return err
	}
	if len(schemas) == 0 {
		if _, err := d.write.ExecContext(ctx, `CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public`); err != nil {
			d.log.Debug("pg_trgm cannot be created", "error", err)
		}
		if schemas, err = tables.List[string](ctx, d.write, found); err != nil {
			return err
		}
	}
	if len(schemas) > 0 {
		d.trigram = schemas[0] + ".gin_trgm_ops"
		return nil
	}
	d.notices = append(d.notices, "Texts are searched without an index, the newest tasks first, because PostgreSQL lacks the extension pg_trgm: "+
		"have an administrator run CREATE EXTENSION pg_trgm in the database, then restart Umbel.")
	return nil
}
