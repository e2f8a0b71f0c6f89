package sqlite

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
)

// Workflows returns a page of the list of workflows.
func (d *DB) Workflows(ctx context.Context, r history.WorkflowRequest) (page history.WorkflowPage, err error) {
	defer annotate(&err, "list workflows")
	where, args := `1`, []any{}
	if r.Name != "" {
		name, known := d.symbols.symbol(r.Name)
		if !known {
			return page, nil
		}
		where, args = `name = ?`, append(args, name)
	}
	if r.Before != 0 {
		where, args = where+` AND workflow < ?`, append(args, r.Before)
	}
	if r.Roots != nil {
		where += ` AND root IN (NULL` + strings.Repeat(`, ?`, len(r.Roots)) + `)`
		for _, root := range r.Roots {
			args = append(args, idValue(root))
		}
	}
	if r.Begun != 0 {
		where += ` AND ifnull(first, 0) <= ?
			AND EXISTS (SELECT 1 FROM tasks WHERE root = workflows.root AND ifnull(first_receipt, 0) <= ?)`
		args = append(args, r.Begun+time.Minute.Microseconds(), r.Begun)
	}
	args = append(args, r.Limit+1)
	var last int64
	err = tables.EachRow(ctx, d.read, `SELECT workflow, root, name, tasks, ended, failed, lost, first, last FROM workflows WHERE `+where+
		tables.AndStatus(r.Status)+` ORDER BY workflow DESC LIMIT ?`, args, func(rows *sql.Rows) error {
		var w history.WorkflowSummary
		var at int64
		var root any
		var name, first, ended sql.NullInt64
		if err := rows.Scan(&at, &root, &name, &w.Tasks, &w.Over, &w.Failed, &w.Lost, &first, &ended); err != nil {
			return err
		}
		if len(page.Workflows) == r.Limit {
			page.Next = last
			return nil
		}
		w.Root, w.StartedAt = idText(root), first.Int64
		if name.Valid {
			w.Name = d.symbols.text(name.Int64)
		}
		if w.Over == w.Tasks {
			w.EndedAt = ended.Int64
		}
		last, page.Workflows = at, append(page.Workflows, w)
		return nil
	})
	return page, err
}

// WorkflowTasks reads the tasks of a root.
func (d *DB) WorkflowTasks(ctx context.Context, root string, limit int, f func(id string, events []byte) error) (total int, err error) {
	defer annotate(&err, "read workflow")
	key := idValue(root)
	total, err = tables.Number[int](ctx, d.read, `SELECT coalesce((SELECT tasks FROM workflows WHERE root = ?1), (SELECT 1 FROM tasks WHERE id = ?1), 0)`, key)
	if err != nil {
		return 0, err
	}
	const read = `SELECT id, body FROM tasks JOIN events USING (task) WHERE `
	each := func(rows *sql.Rows) error {
		var id any
		var body sql.RawBytes
		if err := rows.Scan(&id, &body); err != nil {
			return err
		}
		return f(idText(id), body)
	}
	if err := tables.EachRow(ctx, d.read, read+`id = ? AND root IS NULL`, []any{key}, each); err != nil {
		return 0, err
	}
	return total, tables.EachRow(ctx, d.read, read+`root = ? ORDER BY clock LIMIT ?`, []any{key, limit - 1}, each)
}
