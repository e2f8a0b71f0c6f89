package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

// applicationID identifies the file format in the header of every history: "Umbl".
const applicationID = 0x556d626c

// checkOwner returns an error for a file of another program, before anything in it is changed.
func (d *DB) checkOwner(ctx context.Context) error {
	if info, err := os.Stat(d.path); err != nil || info.Size() == 0 {
		return err
	}
	db, err := connect(d.path, url.Values{"mode": {"ro"}, "_busy_timeout": {"5000"}}, 1)
	if err != nil {
		return err
	}
	err = checkApplicationID(ctx, db)
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code()&0xff == sqlite3.SQLITE_READONLY {
		err = nil // a process died while writing: only a connection that may write can roll that back
	}
	return errors.Join(err, db.Close())
}

// checkApplicationID returns an error unless a database is empty or a history. Early versions of Umbel wrote no id.
func checkApplicationID(ctx context.Context, db *sql.DB) error {
	var id int64
	if err := db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err != nil || id == applicationID {
		return err
	}
	tables, err := tables.List[string](ctx, db, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
	if err != nil {
		return err
	}
	known := len(tables) == 0 || slices.Contains(tables, goose.DefaultTablename) && (len(tables) == 1 || slices.Contains(tables, "symbols"))
	if id == 0 && known {
		return nil
	}
	return fmt.Errorf("it is the database of another program, with the tables %s: choose another data directory",
		strings.Join(tables[:min(len(tables), 5)], ", "))
}

// writeApplicationID adds the id to a history without one.
func writeApplicationID(ctx context.Context, db *sql.DB) error {
	var id int64
	if err := db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err != nil || id == applicationID {
		return err
	}
	_, err := db.ExecContext(ctx, fmt.Sprintf(`PRAGMA application_id = %d`, applicationID))
	return err
}
