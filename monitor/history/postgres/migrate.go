package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the key of the advisory lock that one process holds while it migrates.
const migrationLock = 0x756d62656c // "umbel"

// migrate brings the schema up to date with a connection of db, and creates it if Options name it. It has a transaction of lock wait
// for another process that does so. A schema that is newer than this program is left as it is.
func (d *DB) migrate(ctx context.Context, db, lock *sql.DB, readOnly bool) error {
	all, err := tables.Migrations(migrations, func(ctx context.Context, tx *sql.Tx, _ int64, text string) error {
		_, err := tx.ExecContext(ctx, text, pgx.QueryExecModeSimpleProtocol) // which takes several statements
		return err
	})
	if err != nil {
		return err
	}
	if err := checkServer(ctx, db); err != nil {
		return err
	}
	found, err := version(ctx, db)
	if err == nil && found == 0 && readOnly {
		return errors.New("there is no history in it: give the address that umbel serve has")
	}
	if err == nil && found < all[len(all)-1].Version && !readOnly {
		var held *sql.Tx
		if held, err = lock.BeginTx(ctx, nil); err != nil {
			return err
		}
		defer held.Rollback() //nolint:errcheck // ends the lock
		if _, err = held.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, migrationLock); err == nil {
			err = d.createSchema(ctx, db)
		}
		if err == nil {
			err = findSchema(ctx, db)
		}
		if err == nil {
			found, err = version(ctx, db)
		}
	}
	if err != nil {
		return err
	}
	return tables.Migrate(ctx, db, goose.DialectPostgres, all, found, readOnly, "database")
}

// oldestServer is the first version that has all that is used, as server_version_num.
const oldestServer = 150_000

// checkServer refuses a server that is too old.
func checkServer(ctx context.Context, db *sql.DB) error {
	n, err := tables.Number[int](ctx, db, `SELECT current_setting('server_version_num')::int`)
	if err != nil {
		return err
	}
	return refuseServer(n)
}

func refuseServer(version int) error {
	if version < oldestServer {
		return fmt.Errorf("PostgreSQL %d is too old: use version %d or later", version/10_000, oldestServer/10_000)
	}
	return nil
}

// findSchema refuses a search_path of which no schema is there, or the user may use none.
func findSchema(ctx context.Context, db *sql.DB) error {
	found, err := tables.Number[bool](ctx, db, `SELECT current_schema() IS NOT NULL`)
	if err == nil && !found {
		err = errors.New("no schema of search_path is there, or the user may use none: create it, or correct search_path in the address")
	}
	return err
}

// createSchema creates the schema that Options name, unless it is there: an administrator may have created it for a user who may
// create none.
func (d *DB) createSchema(ctx context.Context, db *sql.DB) error {
	if d.schema == "" {
		return nil
	}
	var found bool
	err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, d.schema).Scan(&found)
	if err != nil || found {
		return err
	}
	name := pgx.Identifier{d.schema}.Sanitize()
	_, err = db.ExecContext(ctx, `CREATE SCHEMA `+name)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == stateNoRights {
		return fmt.Errorf("the user of PostgreSQL may not create the schema %s: let it own the database, or have an administrator "+
			"run CREATE SCHEMA %s AUTHORIZATION with its name", d.schema, name)
	}
	return err
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
