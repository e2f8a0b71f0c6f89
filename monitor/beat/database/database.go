// Package database reads the tables of django-celery-beat from PostgreSQL and SQLite. It reads no arguments, and writes
// nothing.
package database

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"time"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/beat"
)

const (
	prefix           = "django_celery_beat_"
	taskTable        = prefix + "periodictask"
	statementTimeout = 2 * time.Second
)

// Options of a Database. URL is required.
type Options struct {
	// URL is postgres://user:password@host/name or sqlite:////path. Its query may hold, beside settings of the
	// connection, a name for pages, by default the database's, and the schema of the tables.
	URL string
}

// Database is a database with the tables of django-celery-beat. It is safe for concurrent use.
type Database struct {
	name, shown, schema string
	url                 sqldb.URL
	db                  *sql.DB
}

// New checks o and connects nowhere. Its errors contain no password.
func New(o Options) (*Database, error) {
	u, err := sqldb.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	take := func(key string) string {
		v := u.Query.Get(key)
		u.Query.Del(key)
		return v
	}
	b := &Database{url: u, shown: u.String(), name: take("name"), schema: take("schema")}
	if b.name == "" {
		b.name = u.Name()
	}
	if !regexp.MustCompile(`^[\w.-]{1,64}$`).MatchString(b.name) {
		return nil, fmt.Errorf("the database is named %.80q: give it ?name= with letters, digits, _, . and - in the URL", b.name)
	}
	if b.db, err = u.OpenReadOnly(); err != nil {
		return nil, err
	}
	b.db.SetMaxOpenConns(1)
	b.db.SetConnMaxIdleTime(time.Minute)
	return b, nil
}

// Name returns the name of the database on pages.
func (b *Database) Name() string { return b.name }

// String returns the URL without its password.
func (b *Database) String() string { return b.shown }

// Close closes the connections.
func (b *Database) Close() error { return b.db.Close() }

// Read reads the tables in a read-only transaction.
func (b *Database) Read(ctx context.Context) (beat.Table, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*statementTimeout)
	defer cancel()
	tx, err := b.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: b.url.Dialect == sqldb.Postgres})
	if err != nil {
		return beat.Table{}, b.explain(err)
	}
	defer func() { _ = tx.Rollback() }()
	if b.url.Dialect == sqldb.Postgres {
		limits := fmt.Sprintf(`SET LOCAL statement_timeout = %d; SET LOCAL lock_timeout = %[1]d`, statementTimeout.Milliseconds())
		if _, err := tx.ExecContext(ctx, limits); err != nil {
			return beat.Table{}, b.explain(err)
		}
	}
	r := &reader{Database: b, ctx: ctx, tx: tx}
	t, err := r.table()
	return t, b.explain(err)
}

var _ beat.Source = (*Database)(nil)
