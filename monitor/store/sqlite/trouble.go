package sqlite

import (
	"errors"
	"fmt"
	"os"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

var (
	errReadOnly = errors.New("opened for reading only")
	errClosed   = errors.New("closed")
)

// explain adds to an error of SQLite what it means to an operator, and what to do.
func explain(err error) error {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	hint := ""
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		hint = "the disk is full: free some space"
	case sqlite3.SQLITE_READONLY:
		hint = "the file cannot be written: check its permissions and those of its directory"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		hint = "the file is damaged: stop Umbel, move it away, and start again with a new one or a backup"
	case sqlite3.SQLITE_IOERR:
		hint = "the disk does not work as it should"
	case sqlite3.SQLITE_CANTOPEN:
		hint = "the file cannot be opened: check that its directory is there and may be written"
	case sqlite3.SQLITE_BUSY:
		hint = "another program holds the file"
	default:
		return err
	}
	return fmt.Errorf("%s (%w)", hint, err)
}

// present returns an error if the file is not where it was opened.
func (d *DB) present() error {
	if d.opened == nil {
		return nil
	}
	info, err := os.Stat(d.path)
	if err == nil && os.SameFile(info, d.opened) {
		return nil
	}
	return fmt.Errorf("%s was removed or replaced while in use: put it back, or restart Umbel, which begins a new one",
		d.path)
}

// note keeps what came of a write for Health.
func (d *DB) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trouble = err
	if err != nil {
		d.failedAt = d.now()
	}
}
