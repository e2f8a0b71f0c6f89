package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/umbelhq/umbel/monitor/history/tables"
)

var (
	errReadOnly = errors.New("opened for reading only")
	errClosed   = errors.New("closed")
)

const (
	damageHint = "the file is damaged: stop Umbel and put a backup in its place, or start it again, which sets the file " +
		"aside and creates a new one"
	alteredHint = "its tables were changed by another program: stop Umbel and put a backup in its place, or move the file " +
		"away and recover what can be read with umbel repair"
)

// errAltered is returned if the table of schema versions is not as goose wrote it.
var errAltered = errors.New(alteredHint)

// alteredTables reports whether a message of SQLite is about tables that differ from the schema.
func alteredTables(message string) bool {
	for _, part := range []string{"no such table", "no such column", "no such index", "has no column named", "already exists", "duplicate column"} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}

// explain adds to an error of SQLite what it means and what to do about it.
func explain(err error) error {
	if errors.Is(err, errDamaged) {
		return fmt.Errorf("%s (%w)", damageHint, err)
	}
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
		hint = damageHint
	case sqlite3.SQLITE_ERROR:
		if !alteredTables(e.Error()) {
			return err
		}
		hint = alteredHint
	case sqlite3.SQLITE_IOERR:
		hint = "the disk reports an error"
	case sqlite3.SQLITE_CANTOPEN:
		hint = "the file cannot be opened: check that its directory is there and may be written"
	case sqlite3.SQLITE_BUSY:
		hint = "another program has locked the file"
	default:
		return err
	}
	return fmt.Errorf("%s (%w)", hint, err)
}

// annotate says what *err prevented, what it means and what to do about it, unless it is nil or one that callers check for.
func annotate(err *error, format string, args ...any) { tables.Annotate(err, explain, format, args...) }

// checkFile returns an error if the file was removed or replaced since it was opened.
func (d *DB) checkFile() error {
	if d.opened == nil {
		return nil
	}
	info, err := os.Stat(d.path)
	if err == nil && os.SameFile(info, d.opened) {
		return nil
	}
	return fmt.Errorf("%s was removed or replaced while in use: put it back, or restart Umbel, which creates a new one",
		d.path)
}

// checkLock returns an error if the lock does not exclude other processes anymore. It creates a lock file again that was
// removed, unless another process has. It is called by one goroutine at a time.
func (d *DB) checkLock() error {
	if d.lock == nil {
		return nil
	}
	path := d.lock.Name()
	err := locked(path, d.lock)
	if errors.Is(err, fs.ErrNotExist) {
		var again *os.File
		if again, err = lock(path); err == nil {
			d.log.Warn("lock file was removed and is made again", "path", path)
			err = unlock(d.lock)
			d.lock = again
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s no longer excludes other processes (%w): nothing is written, so that two processes do not "+
		"write to one history. Stop the other one, then restart Umbel", path, err)
}

// noteWrite stores the result of a write for Health.
func (d *DB) noteWrite(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writeErr = err
	if err != nil {
		d.failedAt = d.now()
	}
}
