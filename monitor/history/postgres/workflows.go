package postgres

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// workflowPart is what a saved task counts for in its workflow.
type workflowPart struct {
	root                *string // nil if the task is its own
	name                string
	ended, failed, lost bool
	first, last         int64 // when it was sent or else received or else started, and when it ended, µs since 1970 UTC, 0 if unknown
}

// set sets what follows from columns. over says that the task is lost or dismissed.
func (p *workflowPart) set(final, flags int64, over bool, name string) {
	p.name, p.ended, p.failed = name, final != where.ClassActive || over, final == where.ClassFailed
	p.lost = final == where.ClassActive && over && flags&where.FlagDismissed == 0
}

// partOf returns what a task counts for once it is saved.
func partOf(v *state.Task) *workflowPart {
	p := &workflowPart{root: other(v.RootID, v.ID)}
	p.set(where.Class(v.State), where.Flags(v), where.LostAt(v) != nil, nameOf(v))
	for _, f := range []query.Field{query.Started, query.Received, query.Sent} {
		if at, ok := f.Int(v); ok {
			p.first = at
		}
	}
	p.last, _ = query.Finished.Int(v)
	return p
}

func (p *workflowPart) equal(o *workflowPart) bool {
	a, b := *p, *o
	a.root, b.root = nil, nil
	return a == b && (p.root == nil) == (o.root == nil) && (p.root == nil || *p.root == *o.root)
}

// workflowCounts are numbers of tasks.
type workflowCounts struct{ tasks, ended, failed, lost int64 }

func (n *workflowCounts) add(p *workflowPart, by int64) {
	n.tasks += by
	if p.ended {
		n.ended += by
	}
	if p.failed {
		n.failed += by
	}
	if p.lost {
		n.lost += by
	}
}

// workflowChange is what a transaction changes of the workflow of a root.
type workflowChange struct {
	self, members workflowCounts // what the root itself and other tasks add
	named         bool           // the root was written
	name          string
	first, last   int64
}

// workflowChanges are what a transaction changes, by root, in order.
type workflowChanges struct {
	byRoot map[string]*workflowChange
	roots  []string
}

// change notes that a task was added, if before is nil, removed, if after is nil, or changed.
func (w *workflowChanges) change(id string, before, after *workflowPart) {
	if before != nil && after != nil && before.equal(after) {
		return
	}
	if before != nil {
		w.add(id, before, -1)
	}
	if after != nil {
		w.add(id, after, 1)
	}
}

func (w *workflowChanges) add(id string, p *workflowPart, by int64) {
	root := id
	if p.root != nil {
		root = *p.root
	}
	c := w.byRoot[root]
	if c == nil {
		if w.byRoot == nil {
			w.byRoot = make(map[string]*workflowChange)
		}
		c = new(workflowChange)
		w.byRoot[root], w.roots = c, append(w.roots, root)
	}
	if p.root != nil {
		c.members.add(p, by)
	} else {
		c.self.add(p, by)
		c.named, c.name = true, ""
		if by > 0 {
			c.name = p.name
		}
	}
	if by > 0 {
		if p.first != 0 && (c.first == 0 || p.first < c.first) {
			c.first = p.first
		}
		c.last = max(c.last, p.last)
	}
}

// Statements that bring the table of workflows up to date. A workflow that is not there had no member before the transaction.
const (
	updateWorkflows = `UPDATE workflows w SET name = CASE WHEN c.named THEN nullif(c.name, '') ELSE w.name END,
		tasks = w.tasks + c.tasks, ended = w.ended + c.ended, failed = w.failed + c.failed, lost = w.lost + c.lost,
		first = least(w.first, nullif(c.first, 0)), last = greatest(w.last, nullif(c.last, 0))
		FROM unnest($1::text[], $2::boolean[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[])
			AS c (root, named, name, tasks, ended, failed, lost, first, last)
		WHERE w.root = c.root RETURNING w.root, w.tasks`
	insertWorkflows = `INSERT INTO workflows (root, name, tasks, ended, failed, lost, first, last)
		SELECT c.root, r.name, c.tasks + (r.id IS NOT NULL)::int, c.ended + coalesce((r.final <> 0 OR r.lost IS NOT NULL)::int, 0),
			c.failed + coalesce((r.final = 2)::int, 0), c.lost + coalesce((r.final = 0 AND r.lost IS NOT NULL AND r.flags & $8 = 0)::int, 0),
			least(nullif(c.first, 0), coalesce(r.sent, r.received, r.started)), greatest(nullif(c.last, 0), r.finished)
		FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]) WITH ORDINALITY
			AS c (root, tasks, ended, failed, lost, first, last, place)
		LEFT JOIN tasks r ON r.id = c.root AND r.root IS NULL ORDER BY c.place`
)

// saveWorkflows saves what the transaction changes of workflows, once the tasks are saved.
func (t *tx) saveWorkflows(w workflowChanges) error {
	var named []bool
	var names []string
	var n [6][]int64
	var roots []string
	for _, root := range w.roots {
		c := w.byRoot[root]
		m, s := &c.members, &c.self
		roots, named, names = append(roots, root), append(named, c.named), append(names, c.name)
		for i, v := range []int64{m.tasks + s.tasks, m.ended + s.ended, m.failed + s.failed, m.lost + s.lost, c.first, c.last} {
			n[i] = append(n[i], v)
		}
	}
	if len(roots) == 0 {
		return nil
	}
	known, empty := make(map[string]bool), []string(nil)
	err := t.Each(updateWorkflows, []any{roots, named, names, n[0], n[1], n[2], n[3], n[4], n[5]}, func(rows *sql.Rows) error {
		var root string
		var tasks int64
		err := rows.Scan(&root, &tasks)
		if known[root] = true; tasks <= 0 {
			empty = append(empty, root)
		}
		return err
	})
	if err == nil && len(empty) > 0 {
		err = t.Exec(`DELETE FROM workflows WHERE root = ANY($1)`, empty)
	}
	if err != nil {
		return err
	}
	n, roots = [6][]int64{}, nil
	for _, root := range w.roots {
		c := w.byRoot[root]
		if m := &c.members; m.tasks > 0 && !known[root] {
			roots = append(roots, root)
			for i, v := range []int64{m.tasks, m.ended, m.failed, m.lost, c.first, c.last} {
				n[i] = append(n[i], v)
			}
		}
	}
	if len(roots) == 0 {
		return nil
	}
	return t.Exec(insertWorkflows, roots, n[0], n[1], n[2], n[3], n[4], n[5], where.FlagDismissed)
}

// Workflows returns a page of the list of workflows.
func (d *DB) Workflows(ctx context.Context, r history.WorkflowRequest) (page history.WorkflowPage, err error) {
	defer annotate(&err, "list workflows")
	where, args := []string{`TRUE`}, []any{}
	if r.Name != "" {
		where, args = append(where, `name = ?`), append(args, r.Name)
	}
	if r.Before != 0 {
		where, args = append(where, `workflow < ?`), append(args, r.Before)
	}
	if r.Roots != nil {
		where, args = append(where, `root = ANY(?)`), append(args, r.Roots)
	}
	if r.Begun != 0 {
		where = append(where, `coalesce(first, 0) <= ?`,
			`EXISTS (SELECT 1 FROM tasks WHERE root = workflows.root AND coalesce(first_receipt, 0) <= ?)`)
		args = append(args, r.Begun+time.Minute.Microseconds(), r.Begun)
	}
	args = append(args, r.Limit+1)
	var last int64
	err = tables.EachRow(ctx, d.read, `SELECT workflow, root, name, tasks, ended, failed, lost, first, last FROM workflows WHERE `+
		strings.Join(where, ` AND `)+tables.AndStatus(r.Status)+` ORDER BY workflow DESC LIMIT ?`, args, func(rows *sql.Rows) error {
		var w history.WorkflowSummary
		var at int64
		var name sql.NullString
		var first, ended sql.NullInt64
		if err := rows.Scan(&at, &w.Root, &name, &w.Tasks, &w.Over, &w.Failed, &w.Lost, &first, &ended); err != nil {
			return err
		}
		if len(page.Workflows) == r.Limit {
			page.Next = last
			return nil
		}
		w.Name, w.StartedAt = name.String, first.Int64
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
	err = d.snapshot(ctx, func(q tables.Reader) error {
		total, err = tables.Number[int](ctx, q, `SELECT coalesce((SELECT tasks FROM workflows WHERE root = ?1), (SELECT 1 FROM tasks WHERE id = ?1), 0)`, root)
		if err != nil {
			return err
		}
		for _, part := range []struct {
			where string
			args  []any
		}{{`id = ? AND root IS NULL`, []any{root}}, {`root = ? ORDER BY clock LIMIT ?`, []any{root, limit - 1}}} {
			if err := eachTask(ctx, q, `SELECT id, body FROM tasks WHERE `+part.where, part.args, f); err != nil {
				return err
			}
		}
		return nil
	})
	return total, err
}

// eachTask calls f with the ids and the events that a query finds.
func eachTask(ctx context.Context, q tables.Reader, query string, args []any, f func(id string, events []byte) error) error {
	return tables.EachRow(ctx, q, query, args, func(rows *sql.Rows) error {
		var id string
		var body []byte
		if err := rows.Scan(&id, &body); err != nil {
			return err
		}
		return f(id, body)
	})
}
