package postgres

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

// smallTables is what DB embeds: a name of its own keeps the field from being exported.
type smallTables = tables.Store

// tableEngine is a DB as package tables uses it.
type tableEngine struct{ db *DB }

// maxRepeats is how often a transaction is repeated that others prevent.
const maxRepeats = 5

func (e tableEngine) Update(ctx context.Context, f func(t tables.Tx) error) error {
	return repeat(ctx, e.db.updateSmall, f)
}

func (e tableEngine) UpdateTasks(ctx context.Context, f func(t tables.Tx) error) error {
	return repeat(ctx, e.db.update, f)
}

// repeat calls f in a transaction until others do not prevent it.
func repeat(ctx context.Context, update func(context.Context, func(t *tx) error) error, f func(t tables.Tx) error) error {
	for n := 0; ; n++ {
		err := update(ctx, func(t *tx) error { return f(t) })
		if n == maxRepeats || !prevented(err) {
			return err
		}
	}
}

// prevented reports whether a transaction failed only because of others at the same time.
func prevented(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == stateDeadlock || e.Code == stateSerialization)
}

func (e tableEngine) Snapshot(ctx context.Context, f func(r tables.Reader) error) error {
	return e.db.snapshot(ctx, f)
}

func (e tableEngine) Reader() tables.Reader { return e.db.read }

func (tableEngine) Dialect() tables.Dialect { return tables.PostgreSQL() }

func (tableEngine) Annotate(err *error, format string, args ...any) { annotate(err, format, args...) }

func (e tableEngine) Now() time.Time { return e.db.now() }

func (e tableEngine) Log() *slog.Logger { return e.db.log }

func (e tableEngine) Failures() *tables.FailureCache { return &e.db.failures }

func (e tableEngine) Calls() *tables.CallRules { return &e.db.calls }

// Dialect is that of the engine.
func (*tx) Dialect() tables.Dialect { return tables.PostgreSQL() }
