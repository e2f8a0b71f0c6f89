package database

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/celery"
)

// reader reads within one transaction.
type reader struct {
	*Outbox
	ctx    context.Context //nolint:containedctx // of the transaction
	tx     *sql.Tx
	now    time.Time // of the database, the same throughout
	server string
}

// readClock reads the time of the transaction.
func (t *reader) readClock() error {
	query := `SELECT now(), current_setting('server_version')`
	if t.dialect == sqldb.SQLite {
		query = `SELECT strftime('%Y-%m-%d %H:%M:%f', 'now'), sqlite_version()`
	}
	var now moment
	var version string
	if err := t.row(query, nil, &now, &version); err != nil {
		return err
	}
	t.now, t.server = now.Time, "PostgreSQL "+version
	if t.dialect == sqldb.SQLite {
		t.server = "SQLite " + version
	}
	return nil
}

// numbered replaces each ? by the placeholder of the dialect.
func (t *reader) numbered(query string) string {
	parts := strings.Split(query, "?")
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteString(t.dialect.Placeholder(i))
		}
		b.WriteString(part)
	}
	return b.String()
}

// row reads one row, sql.ErrNoRows if there is none.
func (t *reader) row(query string, args []any, into ...any) error {
	query = t.numbered(query)
	if t.traceQuery != nil {
		t.traceQuery(query, args)
	}
	return t.tx.QueryRowContext(t.ctx, query, args...).Scan(into...)
}

// rows calls f for each row.
func (t *reader) rows(query string, args []any, f func(rows *sql.Rows) error) error {
	query = t.numbered(query)
	if t.traceQuery != nil {
		t.traceQuery(query, args)
	}
	rows, err := t.tx.QueryContext(t.ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// time returns a parameter to compare columns with. Django stores times in SQLite as text.
func (t *reader) time(at time.Time) any {
	if t.dialect == sqldb.SQLite {
		return at.UTC().Format("2006-01-02 15:04:05.000000")
	}
	return at
}

// moment is a column with a time, zero for NULL.
type moment struct{ time.Time }

// Scan implements sql.Scanner.
func (m *moment) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		m.Time = time.Time{}
	case time.Time:
		m.Time = v.UTC()
	case string:
		m.Time, _ = celery.ParseTime(v)
	case []byte:
		m.Time, _ = celery.ParseTime(string(v))
	default:
		return fmt.Errorf("a time is stored as %T", v)
	}
	return nil
}
