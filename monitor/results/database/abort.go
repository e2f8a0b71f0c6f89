package database

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/results"
)

// Abort implements results.Aborter for Celery's own table.
func (b *Backend) Abort(ctx context.Context, taskID string, now time.Time) error {
	if b.django {
		return results.ErrNoAbort
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	db, err := b.url.OpenReadWrite()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it is done rarely
	if _, err = db.ExecContext(ctx, b.abortStatement(), taskID, now.UTC().Format("2006-01-02 15:04:05.000000")); err != nil {
		return fmt.Errorf("write result to %s: %w", b.shown, err)
	}
	return nil
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
	task, at := b.url.Dialect.Placeholder(1), b.url.Dialect.Placeholder(2)
	if b.url.Dialect == sqldb.SQLite {
		task, at = "?1", "?2"
	}
	return "INSERT INTO " + table + " AS t (" + id + "task_id, status, date_done) VALUES (" + value + task + ", '" + results.Aborted + "', " + at + ")" +
		" ON CONFLICT (task_id) DO UPDATE SET status = '" + results.Aborted + "', result = NULL, traceback = NULL, date_done = excluded.date_done" +
		" WHERE t.status <> 'SUCCESS'"
}
