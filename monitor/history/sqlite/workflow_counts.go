package sqlite

import (
	"database/sql"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// workflowPart is what a saved task counts for in its workflow.
type workflowPart struct {
	root                any           // as in the column; nil if the task is its own
	name                sql.NullInt64 // symbol
	ended, failed, lost bool
	first, last         int64 // when it was sent or else received or else started, and when it ended, µs since 1970 UTC, 0 if unknown
}

// workflowColumns are scanned into a workflowRow.
const workflowColumns = `root, name, final, lost IS NOT NULL, flags, coalesce(sent, received, started, 0), coalesce(finished, 0)`

// workflowRow has what a workflowPart is made of.
type workflowRow struct {
	workflowPart

	final, flags int64
	over         bool // lost or dismissed
}

func (r *workflowRow) into() []any {
	return []any{&r.root, &r.name, &r.final, &r.over, &r.flags, &r.first, &r.last}
}

func (r *workflowRow) part() *workflowPart {
	r.ended, r.failed = r.final != where.ClassActive || r.over, r.final == where.ClassFailed
	r.lost = r.final == where.ClassActive && r.over && r.flags&where.FlagDismissed == 0
	return &r.workflowPart
}

// partOf returns what a task counts for once it is saved. name is the value of its column.
func partOf(v *state.Task, name any) *workflowPart {
	r := workflowRow{final: where.Class(v.State), over: where.LostAt(v) != nil, flags: where.Flags(v)}
	r.root = relative(v.RootID, v.ID)
	r.name.Int64, r.name.Valid = name.(int64)
	for _, f := range []query.Field{query.Started, query.Received, query.Sent} {
		if at, ok := f.Int(v); ok {
			r.first = at
		}
	}
	r.last, _ = query.Finished.Int(v)
	return r.part()
}

// workflowKey is a root as a key of maps.
type workflowKey struct {
	text string
	blob bool
}

func workflowKeyOf(root any) workflowKey {
	if b, ok := root.([]byte); ok {
		return workflowKey{string(b), true}
	}
	text, _ := root.(string)
	return workflowKey{text, false}
}

func (p *workflowPart) equal(o *workflowPart) bool {
	a, b := *p, *o
	a.root, b.root = nil, nil
	return a == b && workflowKeyOf(p.root) == workflowKeyOf(o.root) && (p.root == nil) == (o.root == nil)
}

// workflowChanges are what a transaction changes of workflows, until saveWorkflows.
type workflowChanges struct {
	byRoot map[workflowKey]*workflowChange
	list   []*workflowChange
}

// workflowChange is what a transaction changes of the workflow of a root.
type workflowChange struct {
	root          any
	self, members workflowCounts // what the root itself and other tasks add
	named         bool           // the root was written
	name          sql.NullInt64
	first, last   int64
}

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

// countInWorkflow notes that a task was added, if before is nil, removed, if after is nil, or changed.
func (t *tx) countInWorkflow(id any, before, after *workflowPart) {
	if t.db.uncounted || before != nil && after != nil && before.equal(after) {
		return
	}
	if before != nil {
		t.workflows.add(id, before, -1)
	}
	if after != nil {
		t.workflows.add(id, after, 1)
	}
}

func (w *workflowChanges) add(id any, p *workflowPart, by int64) {
	root := p.root
	if root == nil {
		root = id
	}
	c := w.of(root)
	if p.root != nil {
		c.members.add(p, by)
	} else {
		c.self.add(p, by)
		c.named, c.name = true, sql.NullInt64{}
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

func (w *workflowChanges) of(root any) *workflowChange {
	key := workflowKeyOf(root)
	c := w.byRoot[key]
	if c == nil {
		if w.byRoot == nil {
			w.byRoot = map[workflowKey]*workflowChange{}
		}
		c = &workflowChange{root: root}
		w.byRoot[key], w.list = c, append(w.list, c)
	}
	return c
}

// Statements that bring the table of workflows up to date. One that is not there had no member before the transaction.
const (
	rootsAtOnce    = 64
	findWorkflows  = `SELECT root FROM workflows WHERE root IN (?`
	insertWorkflow = `INSERT INTO workflows (root, name, tasks, ended, failed, lost, first, last)
		SELECT ?1, r.name, ?2 + (r.task IS NOT NULL), ?3 + ifnull(r.final <> 0 OR r.lost IS NOT NULL, 0), ?4 + ifnull(r.final = 2, 0),
			?5 + ifnull(r.final = 0 AND r.lost IS NOT NULL AND r.flags & 64 = 0, 0),
			min(ifnull(?6, coalesce(r.sent, r.received, r.started)), ifnull(coalesce(r.sent, r.received, r.started), ?6)),
			max(ifnull(?7, r.finished), ifnull(r.finished, ?7))
		FROM (SELECT 1) LEFT JOIN tasks r ON r.id = ?1 AND r.root IS NULL`
	updateWorkflow = `UPDATE workflows SET name = iif(?2, ?3, name), tasks = tasks + ?4, ended = ended + ?5, failed = failed + ?6, lost = lost + ?7,
		first = min(ifnull(first, ?8), ifnull(?8, first)), last = max(ifnull(last, ?9), ifnull(?9, last)) WHERE root = ?1`
)

// saveWorkflows saves what the transaction changes of workflows, each once.
func (t *tx) saveWorkflows() error {
	list := t.workflows.list
	known := make(map[workflowKey]bool, len(list))
	for some := range slices.Chunk(list, rootsAtOnce) {
		roots := make([]any, rootsAtOnce) // NULL, which is equal to none, beyond those that there are
		for i, c := range some {
			roots[i] = c.root
		}
		err := t.each(findWorkflows+strings.Repeat(`, ?`, rootsAtOnce-1)+`)`, roots, func(rows *sql.Rows) error {
			var root any
			err := rows.Scan(&root)
			known[workflowKeyOf(root)] = true
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, c := range list {
		if err := t.saveWorkflow(c, known[workflowKeyOf(c.root)]); err != nil {
			return err
		}
	}
	t.workflows = workflowChanges{}
	return nil
}

func (t *tx) saveWorkflow(c *workflowChange, known bool) error {
	first, last := sql.NullInt64{Int64: c.first, Valid: c.first != 0}, sql.NullInt64{Int64: c.last, Valid: c.last != 0}
	m, s := &c.members, &c.self
	switch {
	case known:
		err := t.exec(updateWorkflow, c.root, c.named, c.name, m.tasks+s.tasks, m.ended+s.ended, m.failed+s.failed, m.lost+s.lost, first, last)
		if err == nil && m.tasks+s.tasks < 0 {
			err = t.exec(`DELETE FROM workflows WHERE root = ? AND tasks <= 0`, c.root)
		}
		return err
	case m.tasks > 0:
		return t.exec(insertWorkflow, c.root, m.tasks, m.ended, m.failed, m.lost, first, last)
	default:
		return nil
	}
}
