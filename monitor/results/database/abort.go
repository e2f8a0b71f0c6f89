package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/results"
)

// Abort implements results.Aborter.
func (b *Backend) Abort(ctx context.Context, taskID string, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if b.django {
		switch row, err := b.row(ctx, taskID); {
		case err != nil && !errors.Is(err, results.ErrMissing):
			return b.explain(err)
		case err == nil && row.text("content_type") != jsonType:
			return results.ErrNoAbort // the application may not accept JSON
		}
	}
	db, err := b.url.OpenReadWrite()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it is done rarely
	statement, at := b.abortStatement(), now.UTC().Format("2006-01-02 15:04:05.000000")
	if b.django {
		statement, err = b.djangoStatement(ctx, db)
		if b.url.Dialect == sqldb.Postgres {
			at += "+00"
		}
	}
	if err == nil {
		_, err = db.ExecContext(ctx, statement, taskID, at)
	}
	if err != nil {
		return fmt.Errorf("write result to %s: %w", b.shown, err)
	}
	return nil
}

// jsonType is the content type of results in JSON.
const jsonType = "application/json"

// djangoStatement stores the state of a task as django-celery-results does, unless the task has succeeded. Django fills columns
// without NULL itself, and which there are differs by version.
func (b *Backend) djangoStatement(ctx context.Context, db *sql.DB) (string, error) {
	table := sqldb.Quote(b.table)
	none := "SELECT * FROM " + table + " WHERE 1 = 0" //nolint:gosec // a name that is quoted
	rows, err := db.QueryContext(ctx, none)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	there, err := rows.Columns()
	if err != nil {
		return "", err
	}
	task, at := b.placeholders()
	var names, values []string
	for _, column := range [][2]string{
		{"task_id", task},
		{"status", "'" + results.Aborted + "'"},
		{"content_type", "'" + jsonType + "'"},
		{"content_encoding", "'utf-8'"},
		{"result", "'null'"},
		{"meta", `'{"children": []}'`},
		{"date_done", at},
		{"date_created", at},
		{"hidden", "FALSE"},
	} {
		if slices.Contains(there, column[0]) {
			names, values = append(names, column[0]), append(values, column[1])
		}
	}
	set := []string{"traceback = NULL"}
	for _, name := range names {
		if name != "task_id" && name != "date_created" && name != "hidden" {
			set = append(set, name+" = excluded."+name)
		}
	}
	return "INSERT INTO " + table + " AS t (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(values, ", ") +
		") ON CONFLICT (task_id) DO UPDATE SET " + strings.Join(set, ", ") + " WHERE t.status <> 'SUCCESS'", rows.Err()
}

// placeholders returns those of the ID of a task and of a time.
func (b *Backend) placeholders() (task, at string) {
	if b.url.Dialect == sqldb.SQLite {
		return "?1", "?2"
	}
	return b.url.Dialect.Placeholder(1), b.url.Dialect.Placeholder(2)
}

// abortStatement stores the state of a task unless it has succeeded.
func (b *Backend) abortStatement() string {
	id, value := "", ""
	if b.url.Dialect == sqldb.Postgres { // which has a sequence beside the table
		sequence := "task_id_sequence"
		if schema, _, ok := strings.Cut(b.table, "."); ok {
			sequence = schema + "." + sequence
		}
		id, value = "id, ", "nextval('"+strings.ReplaceAll(sqldb.Quote(sequence), "'", "''")+"'), "
	}
	table := sqldb.Quote(b.table)
	task, at := b.placeholders()
	return "INSERT INTO " + table + " AS t (" + id + "task_id, status, date_done) VALUES (" + value + task + ", '" + results.Aborted + "', " + at + ")" +
		" ON CONFLICT (task_id) DO UPDATE SET status = '" + results.Aborted + "', result = NULL, traceback = NULL, date_done = excluded.date_done" +
		" WHERE t.status <> 'SUCCESS'"
}
