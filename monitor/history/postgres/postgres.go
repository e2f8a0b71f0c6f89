// Package postgres keeps history in PostgreSQL, version 15 or later. One process writes, by a lease; others wait. It decides
// nothing about tasks: it stores their events as package state encodes them.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
)

// Options of a DB. URL is required.
type Options struct {
	URL      string // postgres://user:password@host/database, with the parameters of libpq
	Schema   string // created if it is missing; by default the first of search_path
	Node     string // name of this process among those that share the history, of which one leads; empty: it leads, or Open fails
	ReadOnly bool   // read while another process may write; changes nothing and takes no lease
	Copying  bool   // for BeginCopy: an unfinished copy of another history is opened too
	Rules    history.RetentionRules
	Logger   *slog.Logger     // nil discards
	Now      func() time.Time // nil means time.Now
}

// DB is a history.Store in a schema of PostgreSQL.
type DB struct {
	smallTables // outbox, alerts, views, marks, credentials

	location string // without the password
	config   *pgx.ConnConfig
	schema   string // as in Options
	rules    history.RetentionRules
	log      *slog.Logger
	now      func() time.Time

	write  *sql.DB       // one connection
	read   *sql.DB       // others
	small  writing       // one for small tables, which wait for no batch of tasks
	keep   *sql.DB       // one for the lease, which waits for no search
	writer chan struct{} // holds a token while a transaction runs
	lease  *lease        // nil if nothing is written
	node   string        // empty if others must not have the history open
	newest atomic.Int64  // tasks.changed of what this process has written last
	limits limits

	copying    bool // as in Options
	alwaysSlow bool // of searches, in tests

	notices []string     // for Health, since Open
	trigram string       // operator class for indexes of texts, empty if there is none
	weeks   map[int]bool // partitions that are there; guarded by writer
	dead    int          // rows of active tasks that were deleted since the last vacuum; guarded by writer
	vacuum  chan struct{}

	failures tables.FailureCache
	counts   slowCounts
	calls    tables.CallRules

	once    sync.Once
	closed  chan struct{}
	closing error // result of Close

	active atomic.Int64 // see history.Health.ActiveBytes
	size   atomic.Int64 // bytes on disk, as last measured

	mu       sync.Mutex // guards the fields below
	writeErr error
	failedAt time.Time
	measured tables.MeasuredTime
}

var _ history.Store = (*DB)(nil)

// readers are the connections that read: more than concurrent searches.
const readers = 6

// connectTimeout is how long connecting may take.
const connectTimeout = 5 * time.Second

// IsURL reports whether a location of a history is one of PostgreSQL.
func IsURL(location string) bool {
	return strings.HasPrefix(location, "postgres://") || strings.HasPrefix(location, "postgresql://")
}

// Open opens the history in a database and migrates its schema. The error wraps history.ErrLocked if another process writes to
// it, and history.ErrNewerVersion if a newer version wrote it. It holds no password.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	config, err := pgx.ParseConfig(o.URL)
	if err != nil || !IsURL(o.URL) {
		return nil, errors.New("open history: the address of PostgreSQL is not as postgres://user:password@host/database")
	}
	d := &DB{
		location: fmt.Sprintf("postgres://%s:%d/%s", config.Host, config.Port, config.Database),
		node:     o.Node,
		rules:    o.Rules, log: o.Logger, now: o.Now, limits: defaultLimits(),
		writer: make(chan struct{}, 1), small: writing{turn: make(chan struct{}, 1)}, closed: make(chan struct{}), weeks: make(map[int]bool),
		vacuum: make(chan struct{}, 1),
	}
	if d.schema = o.Schema; d.schema != "" {
		d.location += "?search_path=" + d.schema
		config.RuntimeParams["search_path"] = pgx.Identifier{d.schema}.Sanitize()
	}
	d.copying = o.Copying
	d.smallTables = tables.New(tableEngine{d})
	if err := d.open(ctx, config, o.ReadOnly); err != nil {
		return nil, fmt.Errorf("open history %s: %w", d.location, errors.Join(explain(err), d.Close()))
	}
	return d, nil
}

func (d *DB) open(ctx context.Context, config *pgx.ConnConfig, readOnly bool) error {
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "umbel"
	}
	d.config = config
	d.read = connect(config, readers)
	if readOnly {
		if err := d.migrate(ctx, d.read, nil, true); err != nil {
			return err
		}
		return d.refuseUnfinished(ctx)
	}
	d.keep, d.write, d.small.pool = connect(config, 1), connect(config, 1), connect(config, 1)
	for _, step := range []func() error{
		func() error { return d.migrate(ctx, d.write, d.keep, false) },
		func() error { return d.takeLease(ctx) },
		func() error { return d.refuseUnfinished(ctx) }, // after the lease, which a copy that runs has
		func() error { return d.findTrigrams(ctx) },
		func() error { return d.loadWeeks(ctx) },
		func() error { return d.ReloadRules(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	d.keepLease()
	for _, n := range d.notices {
		d.log.Warn(n) //nolint:sloglint // the notice is the message, as on the pages
	}
	return nil
}

// connect returns a pool of at most n connections, which stay open.
func connect(config *pgx.ConnConfig, n int) *sql.DB {
	db := sql.OpenDB(connector{stdlib.GetConnector(*config)})
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db
}

// Health returns the condition of the store.
func (d *DB) Health() history.Health {
	h := history.Health{Location: d.location, Size: d.size.Load(), ActiveBytes: d.active.Load(), Notices: d.notices}
	h.OverMaxSize = d.rules.MaxSize > 0 && h.ActiveBytes > d.rules.MaxSize
	if d.lease != nil && d.lease.lost.Load() && d.node == "" {
		d.noteWrite(errTaken)
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
		d.writer <- struct{}{} // never released: no transaction can begin
		d.small.turn <- struct{}{}
		d.closing = d.releaseLease()
		for _, db := range []*sql.DB{d.read, d.write, d.small.pool, d.keep} {
			if db != nil {
				d.closing = errors.Join(d.closing, tables.ClosePool(db))
			}
		}
	})
	return d.closing
}

// limits bound what one call does.
type limits struct {
	groups   int // failure groups
	failures int // counted of a group
	examined int // tasks that a search decodes
	looked   int // rows of the list that a slow search looks at
	window   int // of them that one statement looks at
	chunk    int // tasks that one statement reads
	dead     int // rows of active tasks that are deleted before their space is taken back
}

func defaultLimits() limits {
	return limits{
		groups: history.MaxFailureGroups, failures: history.MaxFailureCount,
		examined: 20_000, looked: 200_000, window: 20_000, chunk: 5_000, dead: 10_000,
	}
}
