// Package tables stores the parts of a history that are plain SQL over small tables, alike in every engine: the outbox of
// commands with the audit log, alerts, saved views, marks, sessions and tokens, and samples of outboxes.
//
// Queries are written in the SQL that SQLite and PostgreSQL share, with ? and ?1 as parameters; a Dialect has what differs.
package tables

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// Reader runs queries.
type Reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Tx is a transaction that writes. It is used by one goroutine.
type Tx interface {
	Reader

	// Context is that of all statements. It is never canceled.
	Context() context.Context
	// Dialect is that of the engine.
	Dialect() Dialect
	// Exec runs a statement.
	Exec(query string, args ...any) error
	// Change runs a statement and returns how many rows it has changed.
	Change(query string, args ...any) (int, error)
	// Insert runs a statement and returns the key of the row it has inserted, in the named column.
	Insert(key, query string, args ...any) (int64, error)
	// Get reads the one row of a query, sql.ErrNoRows if there is none.
	Get(query string, args []any, into ...any) error
	// Committed has f called after the commit, before another transaction begins.
	Committed(f func())
}

// Engine is a database.
type Engine interface {
	// Update calls f in a transaction and commits it if f returns nil. f may be called again if other transactions prevent the
	// commit. Several processes may do so at once.
	Update(ctx context.Context, f func(t Tx) error) error
	// UpdateTasks is Update for the only process that saves tasks: in others it fails.
	UpdateTasks(ctx context.Context, f func(t Tx) error) error
	// Snapshot calls f with a reader whose queries all see the same state of the database.
	Snapshot(ctx context.Context, f func(r Reader) error) error
	// Reader returns a reader whose queries see what is committed. f of EachRow must not use the engine.
	Reader() Reader
	// Dialect is how the engine is spoken to.
	Dialect() Dialect
	// Annotate says what *err prevented, what it means and what to do about it, unless it is nil or one that callers check for.
	Annotate(err *error, format string, args ...any)
	// Now returns the time.
	Now() time.Time
	// Log takes what goes wrong beside calls.
	Log() *slog.Logger
	// Failures caches failure groups.
	Failures() *FailureCache
	// Calls are the rules for duplicates that apply.
	Calls() *CallRules
}

// Store is a part of a history.Store, over an Engine.
type Store struct{ engine Engine }

var (
	_ history.Outbox        = Store{}
	_ history.OutboxSamples = Store{}
	_ history.Alerts        = Store{}
	_ history.Views         = Store{}
	_ history.Marks         = Store{}
	_ history.Credentials   = Store{}
)

// New returns a store over an engine that has the tables.
func New(e Engine) Store { return Store{e} }

// tx is a transaction with what this package does in it.
type tx struct{ Tx }

// update calls f in a transaction.
func (d Store) update(ctx context.Context, f func(t tx) error) error {
	return d.engine.Update(ctx, func(t Tx) error { return f(tx{t}) })
}
