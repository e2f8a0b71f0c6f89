// Package database reads results from the tables of Celery's database backend and of django-celery-results. It is
// the only package that imports the SQL drivers for them, and writes nothing.
package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	_ "github.com/lib/pq"  // the driver postgres
	_ "modernc.org/sqlite" // the driver sqlite

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
	scheme, after, ok := strings.Cut(rest, "://")
	if !ok {
		return nil, errors.New("the URL of the result backend has no scheme, such as db+postgresql://")
	}
	dialect, _, _ := strings.Cut(scheme, "+")
	b := &Backend{django: django}
	table := celeryTable
	if django {
		table = djangoTable
	}
	if o.Table != "" {
		table = o.Table
	}
	var err error
	switch dialect {
	case "sqlite":
		err = b.sqlite(after)
	case "postgresql", "postgres":
		err = b.postgres(after)
	default:
		return nil, fmt.Errorf("results in %.20s are not supported: only in SQLite and PostgreSQL", dialect)
	}
	if err != nil {
		return nil, err
	}
	b.db.SetMaxOpenConns(2)
	b.db.SetConnMaxIdleTime(time.Minute)
	placeholder := "$1"
	if dialect == "sqlite" {
		placeholder = "?"
	}
	b.query = "SELECT * FROM " + quoted(table) + " WHERE task_id = " + placeholder
	return b, nil
}

// quoted is a table's name, with a schema or without, as SQL writes it.
func quoted(table string) string {
	parts := strings.Split(table, ".")
	for i, p := range parts {
		parts[i] = `"` + strings.ReplaceAll(p, `"`, `""`) + `"`
	}
	return strings.Join(parts, ".")
}

// sqlite opens what comes after sqlite:// in SQLAlchemy's URLs: /relative, or //absolute.
func (b *Backend) sqlite(after string) (err error) {
	path, ok := strings.CutPrefix(after, "/")
	path, _, _ = strings.Cut(path, "?")
	if !ok || path == "" || path == ":memory:" {
		return errors.New("a SQLite database of results is named by its path: db+sqlite:////var/lib/app/results.db")
	}
	name := url.URL{Scheme: "file", OmitHost: true, Path: path}
	if !strings.HasPrefix(path, "/") {
		name = url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	}
	b.shown = "sqlite:///" + path
	b.db, err = sql.Open("sqlite", name.String()+"?mode=ro&_pragma=busy_timeout(2000)&_pragma=query_only(1)")
	return err
}

// postgres opens what comes after postgresql://.
func (b *Backend) postgres(after string) error {
	u, err := url.Parse("postgres://" + after)
	if err != nil {
		return errors.New("the URL of the result backend is malformed: percent-encode special characters in the password")
	}
	q := u.Query()
	q.Set("binary_parameters", "yes") // one round trip, which works behind PgBouncer
	q.Set("application_name", "umbel")
	if !q.Has("sslmode") && os.Getenv("PGSSLMODE") == "" {
		q.Set("sslmode", "prefer") // as libpq does
	}
	u.RawQuery = q.Encode()
	b.shown = "postgresql://" + u.Redacted()[len("postgres://"):]
	b.shown, _, _ = strings.Cut(b.shown, "?") // it may hold a password too
	if b.db, err = sql.Open("postgres", u.String()); err != nil {
		return errors.New("the URL of the result backend is not one of PostgreSQL's")
	}
	return nil
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
