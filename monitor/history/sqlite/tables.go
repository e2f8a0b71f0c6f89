package sqlite

import (
	"context"
	"log/slog"
	"time"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

// smallTables is what DB embeds: a name of its own keeps the field from being exported.
type smallTables = tables.Store

// tableEngine is a DB as package tables uses it.
type tableEngine struct{ db *DB }

func (e tableEngine) Update(ctx context.Context, f func(t tables.Tx) error) error {
	return e.db.update(ctx, func(t *tx) error { return f(tableTx{t}) })
}

func (e tableEngine) UpdateTasks(ctx context.Context, f func(t tables.Tx) error) error {
	return e.Update(ctx, f)
}

func (e tableEngine) Snapshot(ctx context.Context, f func(r tables.Reader) error) error {
	return e.db.snapshot(ctx, f)
}

func (e tableEngine) Reader() tables.Reader { return e.db.read }

func (tableEngine) Dialect() tables.Dialect { return tables.SQLite() }

func (tableEngine) Annotate(err *error, format string, args ...any) { annotate(err, format, args...) }

func (e tableEngine) Now() time.Time { return e.db.now() }

func (e tableEngine) Log() *slog.Logger { return e.db.log }

func (e tableEngine) Failures() *tables.FailureCache { return &e.db.failures }

func (e tableEngine) Calls() *tables.CallRules { return &e.db.calls }

// tableTx is a transaction as package tables uses it.
type tableTx struct{ *tx }

func (t tableTx) Context() context.Context { return t.ctx }

func (tableTx) Dialect() tables.Dialect { return tables.SQLite() }

func (t tableTx) Exec(query string, args ...any) error { return t.exec(query, args...) }

func (t tableTx) Change(query string, args ...any) (int, error) { return t.change(query, args...) }

func (t tableTx) Insert(_, query string, args ...any) (int64, error) { return t.insert(query, args...) }

func (t tableTx) Get(query string, args []any, into ...any) error { return t.get(query, args, into...) }

func (t tableTx) Committed(f func()) { t.committed = append(t.committed, f) }
