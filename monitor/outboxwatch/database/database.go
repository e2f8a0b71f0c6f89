// Package database reads the outbox of django-celery-outbox from PostgreSQL and SQLite. Every read is bounded: it follows
// an index, stops after a fixed number of entries, and runs in a read-only transaction with a timeout.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

const (
	rowTable         = "celery_outbox"
	deadTable        = "celery_outbox_dead_letter"
	staleTimeout     = 5 * time.Minute // CELERY_OUTBOX_STALE_TIMEOUT_SECONDS of the package
	statementTimeout = 2 * time.Second
)

// Options of an Outbox. URL is required.
type Options struct {
	// URL is postgres://user:password@host/name or sqlite:////path. Its query may hold, beside settings of the
	// connection:
	//
	//	name               of the outbox on pages, the database's if there is none
	//	schema             of both tables
	//	table              the name of celery_outbox, with a schema or without
	//	dead_letter_table  the name of celery_outbox_dead_letter
	//	stale_timeout      CELERY_OUTBOX_STALE_TIMEOUT_SECONDS, such as 300 or 10m
	URL string
}

// Outbox is an application's outbox in a database. It is safe for concurrent use.
type Outbox struct {
	name, shown string
	url         sqldb.URL
	dialect     sqldb.Dialect
	table, dead string // as the application names them
	stale       time.Duration
	read, write *sql.DB // the same on PostgreSQL; opened when they are first used
	traceQuery  func(query string, args []any)
}

// New checks o and connects nowhere. Its errors contain no password.
func New(o Options) (*Outbox, error) {
	u, err := sqldb.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	take := func(key string) string {
		v := u.Query.Get(key)
		u.Query.Del(key)
		return v
	}
	b := &Outbox{url: u, shown: u.String(), dialect: u.Dialect, table: rowTable, dead: deadTable, stale: staleTimeout, name: u.Name()}
	if name := take("name"); name != "" {
		b.name = name
	}
	if !regexp.MustCompile(`^[\w.-]{1,64}$`).MatchString(b.name) {
		return nil, fmt.Errorf("the outbox is named %.80q: give it ?name= with letters, digits, _, . and - in the URL", b.name)
	}
	if schema := take("schema"); schema != "" {
		b.table, b.dead = schema+"."+b.table, schema+"."+b.dead
	}
	if table := take("table"); table != "" {
		b.table = table
	}
	if table := take("dead_letter_table"); table != "" {
		b.dead = table
	}
	if err := b.setStale(take("stale_timeout")); err != nil {
		return nil, err
	}
	return b, b.open()
}

func (b *Outbox) setStale(text string) error {
	if text == "" {
		return nil
	}
	if strings.Trim(text, "0123456789") == "" {
		text += "s"
	}
	var err error
	if b.stale, err = time.ParseDuration(text); err != nil || b.stale <= 0 {
		return errors.New("stale_timeout in the URL of the outbox is not a time such as 300 or 10m")
	}
	return nil
}

// open opens pools of two connections in all, which dial when they are first used.
func (b *Outbox) open() (err error) {
	if b.read, err = b.url.OpenReadOnly(); err != nil {
		return err
	}
	b.read.SetMaxOpenConns(2)
	b.write = b.read
	if b.dialect == sqldb.SQLite {
		b.read.SetMaxOpenConns(1)
		if b.write, err = b.url.OpenReadWrite(); err != nil {
			return err
		}
		b.write.SetMaxOpenConns(1)
		b.write.SetConnMaxIdleTime(time.Second)
	}
	b.read.SetConnMaxIdleTime(time.Minute)
	return nil
}

// Name returns the name of the outbox.
func (b *Outbox) Name() string { return b.name }

// String returns the URL without its password.
func (b *Outbox) String() string { return b.shown }

// Close closes the connections.
func (b *Outbox) Close() error {
	err := b.read.Close()
	if b.write != b.read {
		err = errors.Join(err, b.write.Close())
	}
	return err
}

// begin begins a transaction that reads, or one that writes too. Settings are local to it, so that it works behind
// PgBouncer.
func (b *Outbox) begin(ctx context.Context, write bool) (*sql.Tx, error) {
	if b.dialect == sqldb.SQLite {
		if write {
			return b.write.BeginTx(ctx, nil)
		}
		return b.read.BeginTx(ctx, nil)
	}
	tx, err := b.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: !write})
	if err != nil {
		return nil, err
	}
	settings := fmt.Sprintf(`SET LOCAL statement_timeout = %d; SET LOCAL lock_timeout = %[1]d`, statementTimeout.Milliseconds())
	if !write {
		settings += `; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off` // in the order of an index, whatever statistics say
	}
	if _, err := tx.ExecContext(ctx, settings); err != nil {
		_ = tx.Rollback()
		return nil, err
	}
	return tx, nil
}

// reading calls f in a transaction that reads. Its error is an *outboxwatch.Error.
func (b *Outbox) reading(ctx context.Context, f func(t *reader) error) error {
	tx, err := b.begin(ctx, false)
	if err != nil {
		return b.explain(err)
	}
	defer func() { _ = tx.Rollback() }()
	t := &reader{Outbox: b, ctx: ctx, tx: tx}
	if err := t.readClock(); err != nil {
		return b.explain(err)
	}
	if err := f(t); err != nil {
		return b.explain(err)
	}
	return nil
}

var _ outboxwatch.Source = (*Outbox)(nil)
