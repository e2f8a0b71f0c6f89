package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

// maxWrite is how long a transaction may take. One of a server that is silent then fails, and is repeated.
const maxWrite = time.Minute

// tx is a transaction on a connection that writes. It is used by one goroutine.
type tx struct {
	*sql.Tx

	// ctx is not canceled with that of the caller: a transaction ends whole.
	ctx  context.Context //nolint:containedctx // lives as long as the transaction
	db   *DB
	conn *sql.Conn

	made      map[int]bool // partitions that the transaction has made
	committed []func()     // called after the commit, before another transaction begins
}

// writing is a connection that writes, and who may use it.
type writing struct {
	pool *sql.DB
	turn chan struct{} // holds a token while a transaction runs
}

// update calls f in a transaction and commits it if f returns nil. ctx cancels only the wait for other transactions, so f is
// brief. The transaction fails with history.ErrLocked once another process has taken the lease.
//
// Of the nodes that share a history, one that does not know whether its transaction was committed leads no longer: a repetition would
// count twice. Who takes the lease waits for that transaction and reads what is there.
func (d *DB) update(ctx context.Context, f func(t *tx) error) error {
	done := false
	err := d.transact(ctx, writing{d.write, d.writer}, func(t *tx) error {
		err := d.lease.check(t)
		if err == nil {
			err = f(t)
		}
		done = err == nil
		return err
	})
	if done && err != nil && d.node != "" {
		d.log.Warn("it is not known whether a transaction was committed", "error", explain(err))
		d.lease.lose()
	}
	return err
}

// updateSmall is update for tables that several processes write to: it needs no lease, and waits for no batch of tasks.
func (d *DB) updateSmall(ctx context.Context, f func(t *tx) error) error {
	return d.transact(ctx, d.small, f)
}

func (d *DB) transact(ctx context.Context, w writing, f func(t *tx) error) error {
	if w.pool == nil {
		return errReadOnly
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closed:
		return errClosed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxWrite)
	defer cancel()
	conn, err := w.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // returns it to its pool
	begun, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	t := &tx{Tx: begun, ctx: ctx, db: d, conn: conn}
	if err := f(t); err != nil {
		_ = begun.Rollback() // the error may have rolled back already
		return err
	}
	if err := begun.Commit(); err != nil {
		return err
	}
	for _, f := range t.committed {
		f()
	}
	return nil
}

// Exec runs a statement.
func (t *tx) Exec(query string, args ...any) error {
	_, err := t.ExecContext(t.ctx, query, args...)
	return err
}

// Change runs a statement and returns how many rows it has changed.
func (t *tx) Change(query string, args ...any) (int, error) {
	r, err := t.ExecContext(t.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// Each calls f with each row of a query. f must not use the transaction.
func (t *tx) Each(query string, args []any, f func(rows *sql.Rows) error) error {
	return tables.EachRow(t.ctx, t.Tx, query, args, f)
}

// Insert runs a statement and returns the key of the row it has inserted, in the named column, 0 if none.
func (t *tx) Insert(key, query string, args ...any) (n int64, err error) {
	err = t.Get(query+` RETURNING `+key, args, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

// Context is that of all statements.
func (t *tx) Context() context.Context { return t.ctx }

// Get reads the one row of a query, sql.ErrNoRows if there is none.
func (t *tx) Get(query string, args []any, into ...any) error {
	return t.QueryRowContext(t.ctx, query, args...).Scan(into...)
}

// Committed has f called after the commit, before another transaction begins on the connection.
func (t *tx) Committed(f func()) { t.committed = append(t.committed, f) }

// raw calls f with pgx's connection, in this transaction. Texts are not encoded there.
func (t *tx) raw(f func(ctx context.Context, c *pgx.Conn) error) error {
	return t.conn.Raw(func(driverConn any) error {
		return raw(driverConn, func(c *pgx.Conn) error { return f(t.ctx, c) })
	})
}

// snapshot calls f in a read transaction, all statements of which see the same.
func (d *DB) snapshot(ctx context.Context, f func(q tables.Reader) error) error {
	begun, err := d.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return err
	}
	defer begun.Rollback() //nolint:errcheck // nothing was written
	return f(begun)
}
