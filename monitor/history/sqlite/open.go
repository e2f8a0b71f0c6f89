package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/umbelhq/umbel/monitor/history/tables"
)

const (
	fileName = "history.db"
	lockName = "lock"
	readers  = 6 // connections that read: more than concurrent searches
)

// Open opens the history in o.Dir and migrates its schema. The error wraps history.ErrLocked if another process has it open,
// and history.ErrNewerVersion if a newer version wrote it.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &DB{
		path: Memory, rules: o.Rules, log: o.Logger, now: o.Now, limits: defaultLimits(),
		writer: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	d.smallTables = tables.New(tableEngine{d})
	if o.Dir != Memory {
		dir, err := filepath.Abs(o.Dir)
		if err != nil {
			return nil, fmt.Errorf("open history: %w", err)
		}
		o.Dir, d.path = dir, filepath.Join(dir, fileName)
	}
	if err := d.open(ctx, o); err != nil {
		return nil, fmt.Errorf("open history %s: %w", d.path, errors.Join(explain(err), d.Close()))
	}
	return d, nil
}

func (d *DB) open(ctx context.Context, o Options) error {
	if d.path == Memory {
		return d.openMemory(ctx)
	}
	if o.ReadOnly {
		return d.openReadOnly(ctx)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return err
	}
	var err error
	if d.lock, err = lock(filepath.Join(o.Dir, lockName)); err != nil {
		return err
	}
	err = d.openFile(ctx)
	if o.ReplaceDamaged && damaged(err) {
		d.log.Error("history is damaged", "path", d.path, "error", err)
		if err = errors.Join(d.disconnect(), d.replaceDamaged()); err == nil {
			err = d.openFile(ctx)
		}
	}
	if err != nil {
		return err
	}
	err = d.noticeDamagedFiles()
	for _, n := range d.notices {
		d.log.Warn(n) //nolint:sloglint // the notice is the message, as on the pages
	}
	return err
}

// sibling returns the path of a file in the directory of the history.
func (d *DB) sibling(name string) string { return filepath.Join(filepath.Dir(d.path), name) }

// openFile opens the file for writing, and creates it if there is none.
func (d *DB) openFile(ctx context.Context) error {
	f, err := os.OpenFile(d.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	d.opened, err = f.Stat()
	// SQLite's locks of a file end when the process closes it anywhere, so this comes first.
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := d.checkOwner(ctx); err != nil {
		return err
	}
	if d.write, err = connect(d.path, writing(), 1); err != nil {
		return err
	}
	if err := checkApplicationID(ctx, d.write); err != nil {
		return err
	}
	if err := migrate(ctx, d.write, false); err != nil {
		return err
	}
	if err := writeApplicationID(ctx, d.write); err != nil {
		return err
	}
	if d.read, err = connect(d.path, reading("rw"), readers); err != nil {
		return err
	}
	previous := readWatermark(d.sibling(watermarkName))
	for _, step := range []func() error{
		func() error { return d.verify(ctx, previous.Damaged) },
		func() error { return d.loadSymbols(ctx) },
		func() error { return d.ReloadRules(ctx) },
		func() error { return d.loadWatermark(ctx, previous) },
		func() error { return d.ForgetRelays(ctx) }, // which moves the watermark
		func() error { _, err := d.checkpoint(ctx); return err },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// openReadOnly opens a file that another process may be writing to.
func (d *DB) openReadOnly(ctx context.Context) error {
	var err error
	if d.opened, err = os.Stat(d.path); err != nil {
		return err
	}
	if d.read, err = connect(d.path, reading("ro"), readers); err != nil {
		return err
	}
	if err := errors.Join(checkApplicationID(ctx, d.read), migrate(ctx, d.read, true)); err != nil {
		return err
	}
	return d.loadSymbols(ctx)
}

// writing returns the parameters of the connection that writes. A commit returns once it is on disk, since its events are
// then acknowledged to the broker.
func writing() url.Values {
	return url.Values{
		"_auto_vacuum": {"INCREMENTAL"}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"},
		"_busy_timeout": {"5000"}, "_foreign_keys": {"1"}, "_txlock": {"immediate"},
		"_pragma": {"cache_size(-65536)", "journal_size_limit(67108864)", "wal_autocheckpoint(4096)", "temp_store(MEMORY)"},
	}
}

// reading returns the parameters of the connections that read.
func reading(mode string) url.Values {
	return url.Values{
		"mode": {mode}, "_busy_timeout": {"5000"}, "_query_only": {"1"}, "_pragma": {"cache_size(-16384)"},
	}
}

// connect returns a pool of at most n connections to a file.
func connect(path string, params url.Values, n int) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+params.Encode())
	if err != nil {
		return nil, err
	}
	return pool(db, n), nil
}

// pool bounds a pool to n connections, which stay open.
func pool(db *sql.DB, n int) *sql.DB {
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db
}

// close waits for running calls, and makes others fail.
func (d *DB) close() error {
	d.writer <- struct{}{} // never released: no transaction can begin
	errs := []error{d.disconnect()}
	if d.lock != nil {
		if m := d.currentWatermark(); m.Commits > 0 {
			errs = append(errs, m.write(d.sibling(watermarkName)))
		}
		errs = append(errs, unlock(d.lock))
	}
	return errors.Join(errs...)
}

// disconnect closes all connections.
func (d *DB) disconnect() error {
	var errs []error
	if d.read != nil && d.read != d.write {
		errs = append(errs, tables.ClosePool(d.read))
	}
	if d.write != nil {
		errs = append(errs, tables.ClosePool(d.write))
	}
	return errors.Join(errs...)
}
