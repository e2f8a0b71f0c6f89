package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// tx is a transaction on the connection that writes. It is used by one goroutine.
type tx struct {
	*sql.Tx
	// ctx is never canceled, so that statements need not watch it.
	ctx   context.Context //nolint:containedctx // lives as long as the transaction
	db    *DB
	stmts map[string]*sql.Stmt

	added   map[string]int64 // symbols, published on commit
	removed []int64

	groups int // failure groups, 0 until they were counted

	tally     tally
	workflows workflowChanges
	textsTo   *int64   // what indexedTo returns, nil until that was looked up
	publishes *bool    // whether the outbox has published tasks, nil until that was looked up
	committed []func() // called after the commit, before another transaction begins
}

// update calls f in a transaction and commits it if f returns nil. ctx cancels only the wait for other transactions, so f is
// brief.
func (d *DB) update(ctx context.Context, f func(t *tx) error) error {
	if d.write == nil {
		return errReadOnly
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case d.writer <- struct{}{}:
		defer func() { <-d.writer }()
	case <-ctx.Done():
		return ctx.Err()
	case <-d.closed:
		return errClosed
	}
	if err := errors.Join(d.checkFile(), d.checkLock()); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	begun, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	t := &tx{Tx: begun, ctx: ctx, db: d, stmts: make(map[string]*sql.Stmt)}
	if err := f(t); err != nil {
		_ = begun.Rollback() // the error may have rolled back already
		return err
	}
	err = t.saveTally()
	if err == nil {
		err = t.saveWorkflows()
	}
	if err != nil {
		_ = begun.Rollback()
		return err
	}
	changed := false
	if d.writesFile() {
		if changed, err = t.count(); err != nil {
			_ = begun.Rollback()
			return err
		}
	}
	if err := begun.Commit(); err != nil {
		return err
	}
	if changed {
		d.committed()
	}
	d.symbols.change(t.added, t.removed)
	for _, f := range t.committed {
		f()
	}
	return nil
}

// stmt returns a statement, prepared once per transaction.
func (t *tx) stmt(query string) (*sql.Stmt, error) {
	if s, ok := t.stmts[query]; ok {
		return s, nil
	}
	s, err := t.PrepareContext(t.ctx, query)
	if err == nil {
		t.stmts[query] = s
	}
	return s, err
}

// exec runs a statement.
func (t *tx) exec(query string, args ...any) error {
	s, err := t.stmt(query) //nolint:sqlclosecheck // the transaction closes it
	if err == nil {
		_, err = s.ExecContext(t.ctx, args...)
	}
	return err
}

// change runs a statement and returns how many rows it has changed.
func (t *tx) change(query string, args ...any) (int, error) {
	s, err := t.stmt(query) //nolint:sqlclosecheck // the transaction closes it
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// each calls f with each row of a query. f must not use the transaction.
func (t *tx) each(query string, args []any, f func(rows *sql.Rows) error) error {
	s, err := t.stmt(query) //nolint:sqlclosecheck // the transaction closes it
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(t.ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// insert runs a statement and returns the key of the row it has inserted, 0 if none.
func (t *tx) insert(query string, args ...any) (int64, error) {
	s, err := t.stmt(query) //nolint:sqlclosecheck // the transaction closes it
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	if n, err := r.RowsAffected(); n == 0 || err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// get reads the one row of a query, sql.ErrNoRows if there is none.
func (t *tx) get(query string, args []any, into ...any) error {
	s, err := t.stmt(query) //nolint:sqlclosecheck // the transaction closes it
	if err != nil {
		return err
	}
	return s.QueryRowContext(t.ctx, args...).Scan(into...)
}

// symbol returns the symbol of a text, and adds it if needed.
func (t *tx) symbol(text string) (int64, error) {
	if n, ok := t.db.symbols.lookupForWrite(text); ok {
		return n, nil
	}
	if n, ok := t.added[text]; ok {
		return n, nil
	}
	n, err := t.insert(`INSERT INTO symbols (text) VALUES (?)`, text)
	if err != nil {
		return 0, err
	}
	if t.added == nil {
		t.added = make(map[string]int64)
	}
	t.added[text] = n
	return n, nil
}

// symbolText returns the text of a symbol, also of one that the transaction has added.
func (t *tx) symbolText(symbol int64) string {
	if text := t.db.symbols.text(symbol); text != "" {
		return text
	}
	for text, n := range t.added {
		if n == symbol {
			return text
		}
	}
	return ""
}

// optional returns the symbol of a text, nil if there is no text.
func (t *tx) optional(text *string) (any, error) {
	if text == nil {
		return nil, nil //nolint:nilnil // SQL's NULL
	}
	return t.symbol(*text)
}
