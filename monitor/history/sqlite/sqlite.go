// Package sqlite keeps history in one SQLite file. It writes on a single connection and reads on others,
// which never wait for a write. It decides nothing about tasks: what a task is, is said by its events, which
// it stores as package state wrote them.
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
)

// Memory is the Dir of a store that keeps nothing beyond its Close.
const Memory = ":memory:"

// Options of a DB. Dir is required.
type Options struct {
	Dir            string // where the file is, made if it is missing, or Memory
	ReadOnly       bool   // read beside the process that writes; nothing is made and no lock is taken
	ReplaceDamaged bool   // rename a damaged file and begin a new one, rather than fail; Health tells
	Rules          history.RetentionRules
	Logger         *slog.Logger     // nil discards
	Now            func() time.Time // nil means time.Now
}

// DB is a history.Store in a file.
type DB struct {
	path   string      // of the file, or Memory
	opened os.FileInfo // the file, nil if there is none
	lock   *os.File
	rules  history.RetentionRules
	log    *slog.Logger
	now    func() time.Time

	write   *sql.DB       // one connection
	read    *sql.DB       // others, or the same one for Memory
	writer  chan struct{} // holds a token while a transaction is at work
	symbols symbols
	limits  limits

	notices []string // for Health, since Open
	changes int64    // by the connection that writes, as SQLite counts; guarded by gate

	failures failureCache

	once    sync.Once
	closed  chan struct{}
	closing error // what came of Close

	unindexed atomic.Int64 // tasks that wait for the text index
	active    atomic.Int64 // bytes that active tasks take, 0 where the history is not too large

	// mu guards what Health says of writes, mark, and days. Commits are only counted with a token in gate.
	mu        sync.Mutex
	watermark watermark
	writeErr  error
	failedAt  time.Time
	measured  measuredTime
}

var _ history.Store = (*DB)(nil)

// Run maintains the store until ctx ends.
func (d *DB) Run(ctx context.Context, removed func(ids []string)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.indexLoop(ctx) })
	g.Go(func() error { return d.pruneLoop(ctx, removed) })
	g.Go(func() error { return d.sweepLoop(ctx) })
	g.Go(func() error { return d.expireLoop(ctx) })
	g.Go(func() error { return d.watchFile(ctx) })
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// Health says how the store is doing.
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

// Close ends all use of the store, once calls at work have returned.
func (d *DB) Close() error {
	d.once.Do(func() {
		close(d.closed)
		d.closing = d.close()
	})
	return d.closing
}
