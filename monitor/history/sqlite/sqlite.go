// Package sqlite keeps history in one SQLite file. It writes on one connection and reads on others, which never wait for a
// write. It decides nothing about tasks: it stores their events as package state encodes them.
package sqlite

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
)

// Memory is the Dir of a store in memory, which is lost on Close.
const Memory = ":memory:"

// Options of a DB. Dir is required.
type Options struct {
	Dir            string // directory of the file, created if missing, or Memory
	ReadOnly       bool   // read while another process may write; creates nothing and takes no lock
	ReplaceDamaged bool   // rename a damaged file and start a new one instead of failing; Health.Notices says so
	Rules          history.RetentionRules
	Logger         *slog.Logger     // nil discards
	Now            func() time.Time // nil means time.Now
}

// DB is a history.Store in a file.
type DB struct {
	smallTables // outbox, alerts, views, marks, credentials

	path   string      // of the file, or Memory
	opened os.FileInfo // the file, nil if there is none
	lock   *os.File
	rules  history.RetentionRules
	log    *slog.Logger
	now    func() time.Time

	write   *sql.DB       // one connection
	read    *sql.DB       // others, or the same one for Memory
	writer  chan struct{} // holds a token while a transaction runs
	symbols symbols
	limits  limits

	notices []string // for Health, since Open
	changes int64    // total_changes of the connection that writes; guarded by writer

	indexing int64 // greatest tasks.task that may be being indexed; guarded by writer

	uncounted bool // no workflows are counted: in a benchmark, to compare with

	failures  tables.FailureCache
	taskCount taskCount
	calls     tables.CallRules

	once    sync.Once
	closed  chan struct{}
	closing error // result of Close

	unindexed atomic.Int64 // tasks not in the text index yet
	active    atomic.Int64 // see history.Health.ActiveBytes

	// mu guards the fields below. Commits are counted only with a token in writer.
	mu        sync.Mutex
	watermark watermark
	writeErr  error
	failedAt  time.Time
	measured  tables.MeasuredTime
}

var _ history.Store = (*DB)(nil)

// Run maintains the store until ctx ends.
func (d *DB) Run(ctx context.Context, removed func(ids []string)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.indexLoop(ctx) })
	g.Go(func() error { return d.groupCalls(ctx) })
	g.Go(func() error { return d.pruneLoop(ctx, removed) })
	g.Go(func() error { return d.sweepLoop(ctx) })
	g.Go(func() error { return d.expireLoop(ctx) })
	g.Go(func() error { return d.watchFile(ctx) })
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// Health returns the condition of the store.
func (d *DB) Health() history.Health {
	h := history.Health{Location: d.path, Unindexed: int(d.unindexed.Load()), ActiveBytes: d.active.Load(), Notices: d.notices}
	h.OverMaxSize = d.rules.MaxSize > 0 && h.ActiveBytes > d.rules.MaxSize
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(d.path + suffix); err == nil && d.opened != nil {
			h.Size += info.Size()
		}
	}
	if err := d.checkFile(); err != nil {
		d.noteWrite(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writeErr != nil {
		h.LastError, h.FailedAt = d.writeErr.Error(), d.failedAt
	}
	return h
}

// Close waits for running calls, then closes the store.
func (d *DB) Close() error {
	d.once.Do(func() {
		close(d.closed)
		d.closing = d.close()
	})
	return d.closing
}
