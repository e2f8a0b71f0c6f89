package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema up to date. One that is newer than this program is left as it is.
func migrate(ctx context.Context, db *sql.DB, readOnly bool) error {
	all, err := listMigrations()
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, nil,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()), goose.WithGoMigrations(all...))
	if err != nil {
		return err
	}
	sources := p.ListSources()
	newest := sources[len(sources)-1].Version
	found, err := version(ctx, db, newest)
	switch {
	case err != nil:
		return err
	case found > newest:
		return fmt.Errorf("%w of Umbel (schema %d, this one knows %d): use that version, or another data directory",
			history.ErrNewerVersion, found, newest)
	case readOnly && found < newest:
		return fmt.Errorf("schema %d is older than %d: start umbel serve once, which updates it", found, newest)
	case readOnly || found == newest:
		return nil
	}
	_, err = p.Up(ctx)
	return err
}

// listMigrations returns the migrations in order. SQLite splits each into statements: the parser of goose takes 4 MiB of
// memory for each file.
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
			_, err := tx.ExecContext(ctx, string(text))
			if fill := fillings()[version]; err == nil && fill != nil {
				err = fill(ctx, tx)
			}
			return err
		}
		list = append(list, goose.NewGoMigration(version, &goose.GoFunc{RunTx: up}, nil))
	}
	return list, nil
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
