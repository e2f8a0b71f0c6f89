// Package sqldb opens the databases of applications for reading: PostgreSQL and SQLite files. It is the only package
// that knows their URLs.
package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver sqlite
)

// Dialect is a kind of SQL.
type Dialect string

// The dialects.
const (
	Postgres Dialect = "postgres"
	SQLite   Dialect = "sqlite"
)

// Placeholder returns the placeholder of the nth parameter, from 1.
func (d Dialect) Placeholder(n int) string {
	if d == SQLite {
		return "?"
	}
	return fmt.Sprintf("$%d", n)
}

// Quote returns the name of a table, with a schema before it or without, as SQL writes it.
func Quote(table string) string {
	parts := strings.Split(table, ".")
	for i, p := range parts {
		parts[i] = QuoteName(p)
	}
	return strings.Join(parts, ".")
}

// QuoteName returns a name as SQL writes it.
func QuoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// URL is a database's address.
type URL struct {
	Dialect Dialect
	Query   url.Values // what follows the ?; of PostgreSQL, settings of the connection
	path    string     // of a SQLite file
	server  *url.URL
}

// Parse reads postgres://user:password@host/name or sqlite:///path, as SQLAlchemy and Django write them: sqlite:///a.db is
// relative, sqlite:////a.db absolute, and a driver may follow the scheme, as in postgresql+psycopg2. Its errors
// contain no password.
func Parse(text string) (URL, error) {
	scheme, after, ok := strings.Cut(text, "://")
	if !ok || strings.ContainsAny(scheme, ":@") { // what is before it could be a password
		return URL{}, errors.New("the URL of the database has no scheme, such as postgresql://")
	}
	dialect, _, _ := strings.Cut(strings.ToLower(scheme), "+")
	switch dialect {
	case "sqlite", "sqlite3":
		return parseSQLite(after)
	case "postgresql", "postgres", "pgsql":
		return parsePostgres(after)
	}
	return URL{}, fmt.Errorf("databases of %.20s are not supported: only SQLite and PostgreSQL", dialect)
}

// parseSQLite reads what comes after sqlite://: /relative, or //absolute.
func parseSQLite(after string) (URL, error) {
	path, ok := strings.CutPrefix(after, "/")
	path, query, _ := strings.Cut(path, "?")
	if !ok || path == "" || path == ":memory:" {
		return URL{}, errors.New("a SQLite database is named by its path: sqlite:////var/lib/app/app.db")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return URL{}, errors.New("what follows the ? of the URL of the database is malformed")
	}
	return URL{Dialect: SQLite, Query: values, path: path}, nil
}

// parsePostgres reads what comes after postgresql://.
func parsePostgres(after string) (URL, error) {
	u, err := url.Parse("postgres://" + after)
	if err != nil {
		return URL{}, errors.New("the URL of the database is malformed: percent-encode special characters in the password")
	}
	return URL{Dialect: Postgres, Query: u.Query(), server: u}, nil
}

// Name is the database's name, of a file its name without the directory.
func (u URL) Name() string {
	if u.Dialect == SQLite {
		return u.path[strings.LastIndexByte(u.path, '/')+1:]
	}
	return strings.Trim(u.server.Path, "/")
}

// Path is that of a SQLite file, empty for others.
func (u URL) Path() string { return u.path }

// String is the URL without its password and what follows the ?, which may hold one too.
func (u URL) String() string {
	if u.Dialect == SQLite {
		return "sqlite:///" + u.path
	}
	shown, _, _ := strings.Cut(u.server.Redacted(), "?")
	return "postgresql://" + shown[len("postgres://"):]
}

// OpenReadOnly opens the database and connects nowhere yet. A connection to a server breaks if it is silent for 5 s, whatever
// the context: statements need a shorter timeout. A connection to a SQLite file cannot write; of PostgreSQL,
// transactions must say that they do not.
func (u URL) OpenReadOnly() (*sql.DB, error) {
	if u.Dialect == SQLite {
		return u.openFile("?mode=ro&_pragma=busy_timeout(2000)&_pragma=query_only(1)")
	}
	return u.openServer()
}

// OpenReadWrite opens the database, whose file must exist, and connects nowhere yet.
func (u URL) OpenReadWrite() (*sql.DB, error) {
	if u.Dialect == SQLite {
		return u.openFile("?mode=rw&_pragma=busy_timeout(2000)&_txlock=immediate")
	}
	return u.openServer()
}

func (u URL) openFile(options string) (*sql.DB, error) {
	name := url.URL{Scheme: "file", OmitHost: true, Path: u.path}
	if !strings.HasPrefix(u.path, "/") {
		name = url.URL{Scheme: "file", Opaque: (&url.URL{Path: u.path}).EscapedPath()}
	}
	return sql.Open("sqlite", name.String()+options)
}

func (u URL) openServer() (*sql.DB, error) {
	server, q := *u.server, u.Query
	q.Set("application_name", "umbel")
	if !q.Has("sslmode") && os.Getenv("PGSSLMODE") == "" {
		q.Set("sslmode", "prefer") // as libpq does
	}
	server.RawQuery = q.Encode()
	config, err := pgx.ParseConfig(server.String())
	if err != nil {
		return nil, errors.New("the URL of the database is not one of PostgreSQL's")
	}
	config.DialFunc = dial
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // one round trip, which works behind PgBouncer
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = 0, 0
	return stdlib.OpenDB(*config), nil
}
