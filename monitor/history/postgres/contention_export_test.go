package postgres

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

// Beside opens another DB that writes to small tables, as any process may.
func (*DB) Beside(t testing.TB, address string) *DB {
	t.Helper()
	other, err := Open(t.Context(), Options{URL: address, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	other.small.pool = connect(config, 1)
	return other
}

// Stepped returns the store of tables of d, which calls step before each statement and each commit.
func (d *DB) Stepped(step func()) tables.Store {
	return tables.New(steppedEngine{tableEngine{d}, step})
}

type steppedEngine struct {
	tableEngine

	step func()
}

func (e steppedEngine) Update(ctx context.Context, f func(t tables.Tx) error) error {
	return e.tableEngine.Update(ctx, func(t tables.Tx) error {
		err := f(steppedTx{t, e.step})
		e.step()
		return err
	})
}

type steppedTx struct {
	tables.Tx

	step func()
}

func (t steppedTx) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	t.step()
	return t.Tx.QueryContext(ctx, query, args...)
}

func (t steppedTx) Exec(query string, args ...any) error {
	t.step()
	return t.Tx.Exec(query, args...)
}

func (t steppedTx) Change(query string, args ...any) (int, error) {
	t.step()
	return t.Tx.Change(query, args...)
}

func (t steppedTx) Insert(key, query string, args ...any) (int64, error) {
	t.step()
	return t.Tx.Insert(key, query, args...)
}

func (t steppedTx) Get(query string, args []any, into ...any) error {
	t.step()
	return t.Tx.Get(query, args, into...)
}
