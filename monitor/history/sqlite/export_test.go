package sqlite

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
)

// Index indexes the texts of all tasks.
func (d *DB) Index(ctx context.Context) error { return d.IndexInSteps(ctx, maxIndexed) }

// IndexInSteps indexes the texts of all tasks, n in each transaction.
func (d *DB) IndexInSteps(ctx context.Context, n int) error { return d.indexAll(ctx, n, func(int) {}) }

// Indexed returns how many tasks have their text in the index.
func (d *DB) Indexed(t *testing.T) int {
	t.Helper()
	n, err := tables.Number[int](t.Context(), d.read, `SELECT coalesce(sum(tasks), 0) FROM text_segments`)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Segments returns how many segments the text index has.
func (d *DB) Segments(t *testing.T) int {
	t.Helper()
	n, err := tables.Number[int](t.Context(), d.read, `SELECT count(*) FROM text_segments`)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Uncount has tasks written without counting their workflows.
func (d *DB) Uncount() { d.uncounted = true }

// Reconnect has those who read begin with nothing in their caches.
func (d *DB) Reconnect() {
	d.read.SetMaxIdleConns(0)
	d.read.SetMaxIdleConns(readers)
}

// LowerLimits lowers the limits of searches, so that small histories exceed them.
func (d *DB) LowerLimits() {
	d.limits = limits{
		gather: 5, scan: 60, page: 30, count: 30, lookups: 20, decoded: 10, chunk: 3,
		groups: d.limits.groups, failures: d.limits.failures,
	}
}

// Explain returns how SQLite carries out what a page takes, where it looks at tasks, their events and texts. Pages are
// walked rather than gathered, if it is asked for.
func (d *DB) Explain(ctx context.Context, r history.TaskRequest, walked bool) ([]string, error) {
	l := defaultLimits()
	if walked {
		l.gather, l.scan = -1, -1
	}
	var plans []string
	err := d.snapshot(ctx, func(q tables.Reader) error {
		e := &explainer{Reader: q}
		s, err := newSearch(ctx, e, r, l, false)
		if err == nil {
			_, err = s.page(ctx)
		}
		plans = e.plans
		return err
	})
	return plans, err
}

// ExplainRollups returns how rollups are found.
func (d *DB) ExplainRollups(ctx context.Context, r history.RollupRange) (plan []string, err error) {
	columns, _ := new(rollupRow).columns(r)
	query, args := d.rollupsQuery(r, columns)
	err = tables.EachRow(ctx, d.read, "EXPLAIN QUERY PLAN "+query, args, func(rows *sql.Rows) error {
		var id, parent, unused int
		var detail string
		defer func() { plan = append(plan, detail) }()
		return rows.Scan(&id, &parent, &unused, &detail)
	})
	return plan, err
}

type explainer struct {
	tables.Reader
	plans []string
}

func (e *explainer) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	err := tables.EachRow(ctx, e.Reader, "EXPLAIN QUERY PLAN "+query, args, func(rows *sql.Rows) error {
		var id, parent, unused int
		var detail string
		err := rows.Scan(&id, &parent, &unused, &detail)
		for _, table := range []string{"tasks", "events", "text_pages"} {
			if strings.HasPrefix(detail, "SCAN "+table) || strings.HasPrefix(detail, "SEARCH "+table) {
				e.plans = append(e.plans, detail)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return e.Reader.QueryContext(ctx, query, args...)
}

// Suspect has a store find that its file is damaged.
func (d *DB) NoteDamage() { d.noteDamage(errDamaged) }

// WorkflowRows returns the rows of workflows that have tasks beside their root, and what the tasks say they are.
func (d *DB) WorkflowRows(ctx context.Context) (kept, recounted []string, err error) {
	const columns = `hex(root) || ' ' || ifnull(name, 'none') || ' ' || tasks || ' ' || ended || ' ' || failed || ' ' || lost`
	kept, err = tables.List[string](ctx, d.read, `SELECT `+columns+` FROM workflows w WHERE EXISTS (SELECT 1 FROM tasks t WHERE t.root = w.root) ORDER BY 1`)
	if err != nil {
		return nil, nil, err
	}
	recounted, err = tables.List[string](ctx, d.read, `SELECT `+columns+` FROM (
		SELECT coalesce(root, id) AS root, max(iif(root IS NULL, name, NULL)) AS name, count(*) AS tasks, max(root IS NOT NULL) AS others,
			sum(final <> 0 OR lost IS NOT NULL) AS ended, sum(final = 2) AS failed, sum(final = 0 AND lost IS NOT NULL AND flags & 64 = 0) AS lost
		FROM tasks GROUP BY coalesce(root, id)
	) WHERE others ORDER BY 1`)
	return kept, recounted, err
}

// NarrowWorkflows returns the roots of workflows that begin after one of their tasks, or end before one.
func (d *DB) NarrowWorkflows(ctx context.Context) ([]string, error) {
	return tables.List[string](ctx, d.read, `SELECT hex(w.root) FROM workflows w JOIN tasks t ON t.root = w.root OR t.root IS NULL AND t.id = w.root
		WHERE ifnull(w.first, 1e18) > coalesce(t.sent, t.received, t.started) OR ifnull(w.last, 0) < t.finished`)
}
