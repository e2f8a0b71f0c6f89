package postgres

import (
	"context"
	"database/sql"

	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

// TryLead takes the lease unless another node holds it, and reports whether this one leads now.
func (d *DB) TryLead(ctx context.Context) (leads bool, err error) {
	defer annotate(&err, "lead")
	if !d.lease.lost.Load() {
		return true, nil
	}
	// Taking it locks out the transactions of who holds it, so look first.
	var held bool
	err = d.keep.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM lease WHERE cluster = $1 AND shard = 0 AND until > clock_timestamp())`, defaultCluster).Scan(&held)
	if held || err != nil {
		return false, err
	}
	holder, _, epoch, err := d.tryLease(ctx)
	if holder != "" || err != nil {
		return false, err
	}
	select {
	case d.writer <- struct{}{}:
		defer func() { <-d.writer }()
	case <-ctx.Done():
		return false, ctx.Err()
	case <-d.closed:
		return false, errClosed
	}
	clear(d.weeks)
	d.failures = tables.FailureCache{}
	if err := d.loadWeeks(ctx); err != nil {
		return false, err
	}
	if err := d.ReloadRules(ctx); err != nil {
		return false, err
	}
	d.lease.hold(epoch)
	d.log.Info("this node leads", "node", d.node, "epoch", epoch)
	return true, nil
}

// Lost returns a channel that is closed once this node, which TryLead had lead, no longer does.
func (d *DB) Lost() <-chan struct{} {
	d.lease.mu.Lock()
	defer d.lease.mu.Unlock()
	return d.lease.gone
}

// NewestChange returns the number of the newest change of a task.
func (d *DB) NewestChange(ctx context.Context) (n int64, err error) {
	defer annotate(&err, "read changes")
	err = d.read.QueryRowContext(ctx, `SELECT coalesce(max(changed), 0) FROM tasks`).Scan(&n)
	return n, err
}

// Written returns the number of the newest change that this process has written, 0 if it has written none.
func (d *DB) Written() int64 { return d.newest.Load() }

// Changes returns the next tasks, at most limit, that were written after the change of a number, and the number of the last.
func (d *DB) Changes(ctx context.Context, after int64, limit int) (list []state.StoredTask, last int64, err error) {
	defer annotate(&err, "read changes")
	last = after
	err = tables.EachRow(ctx, d.read, `SELECT id, body, changed FROM tasks WHERE changed > $1 ORDER BY changed LIMIT $2`, []any{after, limit}, func(rows *sql.Rows) error {
		var t state.StoredTask
		err := rows.Scan(&t.ID, &t.Events, &last)
		list = append(list, t)
		return err
	})
	return list, last, err
}

// StoredTasks returns those tasks that are there.
func (d *DB) StoredTasks(ctx context.Context, ids []string) (list []state.StoredTask, err error) {
	defer annotate(&err, "read tasks")
	err = tables.EachRow(ctx, d.read, `SELECT id, body FROM tasks WHERE id = ANY($1)`, []any{ids}, func(rows *sql.Rows) error {
		var t state.StoredTask
		err := rows.Scan(&t.ID, &t.Events)
		list = append(list, t)
		return err
	})
	return list, err
}

// numberChanges numbers what a transaction writes. Only one transaction runs at a time, whoever leads, so the numbers rise in the order
// of commits.
func (t *tx) numberChanges(records []record) error {
	var last int64
	err := t.Get(`SELECT setval('task_changes', (SELECT last_value FROM task_changes) + $1)`, []any{len(records)}, &last)
	if err != nil {
		return err
	}
	for i := range records {
		records[i].changed = last - int64(len(records)-1-i)
	}
	t.Committed(func() { t.db.newest.Store(last) })
	return nil
}

func (d *DB) keepNode() {}
