package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/umbelhq/umbel/monitor/history"
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
	err = d.keep.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM lease WHERE cluster = $1 AND shard = 0 AND until > clock_timestamp() AND holder <> $2)`,
		defaultCluster, d.lease.holder).Scan(&held)
	if held || err != nil {
		return false, err
	}
	holder, _, epoch, err := d.tryLease(ctx)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == stateLocked {
		return false, d.endOldTransactions(ctx)
	}
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

// endOldTransactions ends those that keep the lease, which has run out, from being taken: a process that is stopped stays within its
// transaction.
func (d *DB) endOldTransactions(ctx context.Context) error {
	_, err := d.keep.ExecContext(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE xact_start < clock_timestamp() - interval '2 s' AND pid IN (
		SELECT pid FROM pg_locks WHERE locktype = 'relation' AND relation = 'lease'::regclass AND granted AND pid <> pg_backend_pid())`)
	d.log.Warn("transactions of the last leader were ended: it does not answer")
	return err
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

// Report tells the other nodes how this one is doing, and returns all that have reported within a day, by name, and how far the clock
// of the database is ahead.
func (d *DB) Report(ctx context.Context, r history.NodeReport) (nodes []history.Node, ahead time.Duration, err error) {
	defer annotate(&err, "report to other nodes")
	epoch := d.lease.epoch.Load()
	if d.lease.lost.Load() {
		epoch = 0
	}
	ctx, cancel := context.WithTimeout(ctx, leaseLength)
	defer cancel()
	result, err := d.keep.ExecContext(ctx, `INSERT INTO nodes (name, holder, since, seen, connected, lag, epoch)
		VALUES ($1, $2, clock_timestamp(), clock_timestamp(), $3, $4, $5)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, seen = excluded.seen, connected = excluded.connected, lag = excluded.lag,
			epoch = excluded.epoch,
			since = CASE WHEN nodes.epoch = excluded.epoch AND nodes.holder = excluded.holder THEN nodes.since ELSE excluded.since END
		WHERE nodes.holder = excluded.holder OR nodes.seen < clock_timestamp() - $6 * interval '1 microsecond'`,
		d.node, d.lease.holder, r.Connected, r.Lag.Microseconds(), epoch, history.MaxNodeSilence.Microseconds())
	if err != nil {
		return nil, 0, err
	}
	if n, err := result.RowsAffected(); n == 0 && err == nil {
		return nil, 0, fmt.Errorf("another Umbel that shares the history is called %s too: give each a --node of its own", d.node)
	}
	begun := time.Now()
	err = tables.EachRow(ctx, d.keep, `SELECT name, split_part(n.holder, ' (', 1), n.holder = $1, n.epoch > 0 AND l.epoch = n.epoch AND until > now(), since, extract(epoch FROM now() - seen)::float8,
			connected, lag, extract(epoch FROM now())::float8
		FROM nodes n LEFT JOIN lease l ON l.cluster = $2 AND l.shard = 0 WHERE seen > now() - interval '1 day' ORDER BY name`,
		[]any{d.lease.holder, defaultCluster}, func(rows *sql.Rows) error {
			var n history.Node
			var leads sql.NullBool
			var silent, now float64
			var lag int64
			err := rows.Scan(&n.Name, &n.Process, &n.Self, &leads, &n.Since, &silent, &n.Connected, &lag, &now)
			n.Leads, n.Lag, n.Silent = leads.Bool, time.Duration(lag)*time.Microsecond, max(0, time.Duration(silent*float64(time.Second)))
			nodes = append(nodes, n)
			ahead = difference(time.UnixMicro(int64(now*1e6)), begun, time.Now())
			return err
		})
	return nodes, ahead, err
}

// difference is how far a time by another clock is outside of the span in which it was read by this one's.
func difference(at, from, to time.Time) time.Duration {
	switch {
	case at.After(to):
		return at.Sub(to)
	case at.Before(from):
		return at.Sub(from)
	default:
		return 0
	}
}

// GiveUp lets another node lead.
func (d *DB) GiveUp(ctx context.Context) (err error) {
	defer annotate(&err, "give up leading")
	if d.lease.lost.Load() {
		return nil
	}
	epoch := d.lease.epoch.Load()
	d.lease.lose()
	return d.endLease(ctx, epoch)
}

// NoteRemoved tells the nodes that follow which tasks are gone.
func (d *DB) NoteRemoved(ctx context.Context, ids []string) (err error) {
	defer annotate(&err, "note what was removed")
	return d.update(ctx, func(t *tx) error {
		if err := t.Exec(`DELETE FROM removals WHERE at < clock_timestamp() - interval '1 hour'`); err != nil {
			return err
		}
		return t.Exec(`INSERT INTO removals (at, ids) VALUES (clock_timestamp(), $1)`, ids)
	})
}

// RemovedAmong returns those of some tasks that were removed within the last hour.
func (d *DB) RemovedAmong(ctx context.Context, ids []string) (removed []string, err error) {
	defer annotate(&err, "read what was removed")
	return tables.List[string](ctx, d.read, `SELECT DISTINCT id FROM removals, unnest(ids) id WHERE id = ANY($1)`, ids)
}

// Removed returns the tasks that were removed after a removal of a number, and the number of the last one; for -1 that alone.
func (d *DB) Removed(ctx context.Context, after int64) (ids []string, last int64, err error) {
	defer annotate(&err, "read what was removed")
	if after < 0 {
		err = d.read.QueryRowContext(ctx, `SELECT coalesce(max(removal), 0) FROM removals`).Scan(&last)
		return nil, last, err
	}
	last = after
	err = tables.EachRow(ctx, d.read, `SELECT removal, unnest(ids) FROM removals WHERE removal > $1 ORDER BY removal`, []any{after}, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&last, &id)
		ids = append(ids, id)
		return err
	})
	return ids, last, err
}
