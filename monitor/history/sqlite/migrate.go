package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"

	"github.com/pressly/goose/v3"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date. One that is newer than this program is left as it is.
func migrate(ctx context.Context, db *sql.DB, readOnly bool) error {
	all, err := tables.Migrations(migrations, func(ctx context.Context, tx *sql.Tx, version int64, text string) error {
		_, err := tx.ExecContext(ctx, text)
		if fill := fillings()[version]; err == nil && fill != nil {
			err = fill(ctx, tx)
		}
		return err
	})
	if err != nil {
		return err
	}
	found, err := version(ctx, db, all[len(all)-1].Version)
	if err != nil {
		return err
	}
	return tables.Migrate(ctx, db, goose.DialectSQLite3, all, found, readOnly, "data directory")
}

// fillings are what SQL cannot do of migrations, by version.
func fillings() map[int64]func(ctx context.Context, tx *sql.Tx) error {
	return map[int64]func(ctx context.Context, tx *sql.Tx) error{21: fillSums}
}

// version is the schema's, 0 in an empty file. It wraps errAltered if the versions before it are not all there.
func version(ctx context.Context, db *sql.DB, newest int64) (int64, error) {
	var n int64
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = ?`, goose.DefaultTablename).Scan(&n)
	if err != nil || n == 0 {
		return 0, err
	}
	applied, err := tables.List[int64](ctx, db, `SELECT DISTINCT version_id FROM `+goose.DefaultTablename+` WHERE is_applied ORDER BY 1`)
	if err != nil || len(applied) == 0 {
		return 0, err
	}
	last := applied[len(applied)-1]
	if last <= newest && int64(len(applied)) != last+1 { // from 0
		return 0, fmt.Errorf("%w (versions %v in %s)", errAltered, applied, goose.DefaultTablename)
	}
	return last, nil
}
