package postgres

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"github.com/umbelhq/umbel/monitor/history"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the key of the advisory lock that one process holds while it migrates.
const migrationLock = 0x756d62656c // "umbel"

// migrate brings the schema up to date with a connection of db. It has a transaction of lock wait for another process that does
// so. A schema that is newer than this program is left as it is.
func migrate(ctx context.Context, db, lock *sql.DB, readOnly bool) error {
	all, err := listMigrations()
	if err != nil {
		return err
	}
	newest := all[len(all)-1].Version
	found, err := version(ctx, db)
	if err == nil && found < newest && !readOnly {
		var held *sql.Tx
		if held, err = lock.BeginTx(ctx, nil); err != nil {
			return err
		}
		defer held.Rollback() //nolint:errcheck // ends the lock
		if _, err = held.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, migrationLock); err == nil {
			found, err = version(ctx, db)
		}
	}
	switch {
	case err != nil:
		return err
	case found > newest:
		return fmt.Errorf("%w of Umbel (schema %d, this one knows %d): use that version, or another database",
			history.ErrNewerVersion, found, newest)
	case readOnly && found < newest:
		return fmt.Errorf("schema %d is older than %d: start umbel serve once, which updates it", found, newest)
	case readOnly || found == newest:
		return nil
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, nil,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()), goose.WithGoMigrations(all...))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// listMigrations returns the migrations in order.
func listMigrations() ([]*goose.Migration, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var list []*goose.Migration
	for _, name := range files {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		up := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, string(text), pgx.QueryExecModeSimpleProtocol) // which takes several statements
			return err
		}
		list = append(list, goose.NewGoMigration(version, &goose.GoFunc{RunTx: up}, nil))
	}
	return list, nil
}

// version is the schema's, 0 in an empty database.
func version(ctx context.Context, db *sql.DB) (n int64, err error) {
	var table sql.NullString
	err = db.QueryRowContext(ctx, `SELECT to_regclass($1)::text`, goose.DefaultTablename).Scan(&table)
	if err != nil || !table.Valid {
		return 0, err
	}
	err = db.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+goose.DefaultTablename+` WHERE is_applied`).Scan(&n)
	return n, err
}
