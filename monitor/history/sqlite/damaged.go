package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

const (
	damagedPrefix = "history.damaged-"
	damagedTime   = "20060102T150405Z"
	checkWhole    = 64 << 20 // files up to this size, in bytes, are checked as a whole when opened
)

// errDamaged is returned for damage that SQLite does not report as an error.
var errDamaged = errors.New("the file is damaged")

// damaged reports whether err means that the file is damaged.
func damaged(err error) bool {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		code := e.Code() & 0xff
		return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
	}
	return errors.Is(err, errDamaged)
}

// verify returns an error if the file is damaged. It checks all of a small or suspect file, else what a monitor restores.
func (d *DB) verify(ctx context.Context, doubtful bool) error {
	if d.opened.Size() > checkWhole && !doubtful {
		return d.Restore(ctx, history.RestoreOptions{
			MaxTasks:   1000,
			Checkpoint: func(history.Checkpoint) error { return nil },
			Task:       func(string, []byte) error { return nil },
			Omitted:    func(state.Position) error { return nil },
			Journal:    func(uint64, []byte, bool) error { return nil },
		})
	}
	found, err := tables.List[string](ctx, d.read, `PRAGMA quick_check(1)`)
	if err == nil && !slices.Equal(found, []string{"ok"}) {
		err = fmt.Errorf("%w: %s", errDamaged, strings.Join(found, "; "))
	}
	return err
}

// replaceDamaged renames the file, its log and its watermark, so that a new one can be created.
func (d *DB) replaceDamaged() error {
	renamed := d.sibling(damagedPrefix + d.now().UTC().Format(damagedTime) + ".db")
	if _, err := os.Lstat(renamed); err == nil {
		return fmt.Errorf("set the damaged file aside: %s is there already", renamed)
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-mark"} {
		if err := os.Rename(d.path+suffix, renamed+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("set the damaged file aside: %w", err)
		}
	}
	d.log.Error("damaged history set aside", "path", renamed)
	return nil
}

// DamagedFiles returns the damaged files in a directory that were renamed and not repaired, oldest first.
func DamagedFiles(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir), damagedPrefix+"*.db"))
}

// noticeDamagedFiles adds a notice for each damaged file.
func (d *DB) noticeDamagedFiles() error {
	files, err := DamagedFiles(filepath.Dir(d.path))
	for _, f := range files {
		name := filepath.Base(f)
		when := ""
		if at, err := time.Parse(damagedTime, strings.TrimSuffix(strings.TrimPrefix(name, damagedPrefix), ".db")); err == nil {
			when = " at " + at.Format(time.DateTime) + " UTC"
		}
		d.notices = append(d.notices, fmt.Sprintf("The history was damaged and set aside%s as %s; a new one was created. "+
			"To recover what can be read, stop Umbel and run umbel repair. Otherwise move that file away.", when, f))
	}
	return err
}
