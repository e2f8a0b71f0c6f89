// Package database reads results from the tables of Celery's database backend and of django-celery-results. It
// writes nothing but that a task is aborted.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/results"
)

// Tables of the two backends.
const (
	celeryTable = "celery_taskmeta"
	djangoTable = "django_celery_results_taskresult"
)

// readTimeout bounds one read.
const readTimeout = 5 * time.Second

// Options of a Backend. URL is required.
type Options struct {
	// URL is the result_backend of the workers: db+sqlite:///path or db+postgresql://user:password@host/name, with
	// SQLAlchemy's drivers (postgresql+psycopg2) too. With django-db+ instead of db+ it is the database of
	// django-celery-results.
	URL string
	// Table is the table of tasks, if database_table_names names another; it may have a schema before it.
	Table string
}

// Backend is a database. It is safe for concurrent use.
type Backend struct {
	db     *sql.DB
	url    sqldb.URL
	table  string
	shown  string
	query  string
	django bool
}

// New checks o and connects nowhere. Its errors contain no password.
func New(o Options) (*Backend, error) {
	rest, django := strings.CutPrefix(o.URL, "django-db+")
	if !django {
		var ok bool
		if rest, ok = strings.CutPrefix(o.URL, "db+"); !ok {
			return nil, errors.New("a database of results has a URL of the form db+sqlite:///path or db+postgresql://host/name")
		}
	}
	u, err := sqldb.Parse(rest)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	table := celeryTable
	if django {
		table = djangoTable
	}
	if o.Table != "" {
		table = o.Table
	}
	b := &Backend{
		url: u, table: table, shown: u.String(), django: django,
		query: "SELECT * FROM " + sqldb.Quote(table) + " WHERE task_id = " + u.Dialect.Placeholder(1),
	}
	if b.db, err = u.OpenReadOnly(); err != nil {
		return nil, err
	}
	b.db.SetMaxOpenConns(2)
	b.db.SetConnMaxIdleTime(time.Minute)
	return b, nil
}

// String is the URL without its password.
func (b *Backend) String() string { return b.shown }

// Close closes the connections.
func (b *Backend) Close() error { return b.db.Close() }

// Result reads the record of a task, results.ErrMissing if there is none.
func (b *Backend) Result(ctx context.Context, taskID string) (results.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	row, err := b.row(ctx, taskID)
	if err != nil {
		return results.Result{}, b.explain(err)
	}
	if b.django {
		return row.django(taskID), nil
	}
	return row.celery(taskID), nil
}

// explain keeps what the server says, which may name the user but never the password.
func (b *Backend) explain(err error) error {
	if errors.Is(err, results.ErrMissing) {
		return err
	}
	return fmt.Errorf("read result from %s: %w", b.shown, err)
}

// row reads a row by the names of its columns, since which there are depends on versions and settings.
func (b *Backend) row(ctx context.Context, taskID string) (columns, error) {
	rows, err := b.db.QueryContext(ctx, b.query, taskID)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return nil, err
		}
		return nil, results.ErrMissing
	}
	values := make([]any, len(names))
	into := make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return nil, err
	}
	c := make(columns, len(names))
	for i, name := range names {
		c[name] = values[i]
	}
	return c, rows.Err()
}
