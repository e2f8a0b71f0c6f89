package tables

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/umbelhq/umbel/monitor/history"
)

// Migrations returns the migrations of a folder in order. run splits each into statements: the parser of goose takes 4 MiB of memory
// for each file.
func Migrations(files fs.FS, run func(ctx context.Context, tx *sql.Tx, version int64, text string) error) ([]*goose.Migration, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	var list []*goose.Migration
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		version, err := goose.NumericComponent(name)
		if err != nil {
			return nil, err
		}
		up := func(ctx context.Context, tx *sql.Tx) error { return run(ctx, tx, version, string(text)) }
		list = append(list, goose.NewGoMigration(version, &goose.GoFunc{RunTx: up}, nil))
	}
	return list, nil
}

// Migrate brings a schema of a version up to date. One that is newer than this program is left as it is: another place can be used
// instead.
func Migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect, all []*goose.Migration, found int64, readOnly bool, instead string) error {
	newest := all[len(all)-1].Version
	switch {
	case found > newest:
		return fmt.Errorf("%w of Umbel (schema %d, this one knows %d): use that version, or another %s",
			history.ErrNewerVersion, found, newest, instead)
	case readOnly && found < newest:
		return fmt.Errorf("schema %d is older than %d: start umbel serve once, which updates it", found, newest)
	case found == newest:
		return nil
	}
	p, err := goose.NewProvider(dialect, db, nil,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()), goose.WithGoMigrations(all...))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}
