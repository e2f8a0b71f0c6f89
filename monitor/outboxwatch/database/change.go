package database

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

// copied are the columns that the package's admin action copies from a dead letter into the outbox. It sets created_at to
// now, retries to 0, and leaves updated_at and retry_after NULL, so that the row is a new one to the relay.
const copied = `task_id, task_name, args, kwargs, redacted_args, redacted_kwargs, options, sentry_trace_id, sentry_baggage, structlog_context, schema_version`

// Requeue moves dead letters into the outbox in one transaction.
func (b *Outbox) Requeue(ctx context.Context, letters []outboxwatch.Letter) (change outboxwatch.Change, err error) {
	err = b.changing(ctx, letters, func(t *reader, list string) error {
		if err := t.checkCopied(); err != nil {
			return err
		}
		insert := fmt.Sprintf(`INSERT INTO %s (created_at, retries, %s) SELECT ?, 0, %[2]s FROM `, sqldb.Quote(t.table), copied)
		if change.Done, err = t.move(insert, list); err != nil {
			return err
		}
		change.Waiting, err = t.waiting(letters, change.Done)
		return err
	})
	return change, err
}

// Purge removes dead letters in one transaction.
func (b *Outbox) Purge(ctx context.Context, letters []outboxwatch.Letter) (change outboxwatch.Change, err error) {
	err = b.changing(ctx, letters, func(t *reader, list string) error {
		change.Done, err = t.letters(fmt.Sprintf(`DELETE FROM %s AS d WHERE %s RETURNING id, task_id`, sqldb.Quote(t.dead), t.among()), list)
		return err
	})
	return change, err
}

// changing calls f in a transaction, with the letters as JSON, and commits it.
func (b *Outbox) changing(ctx context.Context, letters []outboxwatch.Letter, f func(t *reader, list string) error) error {
	list, err := json.Marshal(letters[:min(len(letters), outboxwatch.MaxLetters)])
	if err != nil {
		return err
	}
	tx, err := b.begin(ctx, true)
	if err != nil {
		return b.refused(err)
	}
	defer func() { _ = tx.Rollback() }()
	t := &reader{Outbox: b, ctx: ctx, tx: tx}
	if err := t.readClock(); err != nil {
		return b.refused(err)
	}
	if err := f(t, string(list)); err != nil {
		return b.refused(err)
	}
	return b.refused(tx.Commit())
}

// refused explains why a change failed. The grants that reading lacks are not those that changing does.
func (b *Outbox) refused(err error) error {
	err = b.explain(err)
	if e, ok := err.(*outboxwatch.Error); ok && e.Fault == outboxwatch.FaultPermission { //nolint:errorlint // explain returns it bare
		e.Text = fmt.Sprintf("The database %s does not permit changes to this user: requeuing needs INSERT on %s and DELETE on %s, purging needs DELETE.",
			b.shown, b.table, b.dead)
	}
	return err
}

// checkCopied refuses to lose what is in columns that this version does not know.
func (t *reader) checkCopied() error {
	columns, err := t.columns(t.dead)
	if err != nil {
		return err
	}
	for _, known := range columnsOf(true) {
		delete(columns, known)
	}
	if len(columns) == 0 {
		return nil
	}
	var more []string
	for name := range columns {
		more = append(more, name)
	}
	slices.Sort(more)
	return t.fault(outboxwatch.FaultColumns, "The table %s has %s, which this version of Umbel does not know and would lose: requeue with the application's own command.",
		t.dead, strings.Join(more, ", "))
}

// among is the condition on a dead letter d to be in the list that is the next parameter. An index finds each by its id.
func (t *reader) among() string {
	if t.dialect == sqldb.SQLite {
		return `(d.id, d.task_id) IN (SELECT value ->> 'id', value ->> 'task_id' FROM json_each(?))`
	}
	return `(d.id, d.task_id) IN (SELECT x.id, x.task_id FROM json_to_recordset(?::json) AS x(id bigint, task_id text))`
}

// move copies dead letters and deletes them. On PostgreSQL it is one statement whose DELETE locks the rows and needs no
// other privilege, as SELECT FOR UPDATE would; on SQLite nobody else writes during the transaction.
func (t *reader) move(insert, list string) ([]outboxwatch.Letter, error) {
	dead := sqldb.Quote(t.dead)
	if t.dialect == sqldb.SQLite {
		query := fmt.Sprintf("%s%s AS d WHERE %s ORDER BY id", insert, dead, t.among()) //nolint:gosec // names that are quoted
		if _, err := t.tx.ExecContext(t.ctx, query, t.time(t.now), list); err != nil {
			return nil, err
		}
		return t.letters(fmt.Sprintf(`DELETE FROM %s AS d WHERE %s RETURNING id, task_id`, dead, t.among()), list)
	}
	query := fmt.Sprintf(`WITH gone AS (DELETE FROM %s AS d WHERE %s RETURNING d.*), moved AS (%s gone ORDER BY id)
		SELECT id, task_id FROM gone`, dead, t.among(), strings.Replace(insert, "?", "now()", 1))
	return t.letters(query, list)
}

// waiting returns which of the letters that were not done have a row in the outbox.
func (t *reader) waiting(letters, done []outboxwatch.Letter) ([]outboxwatch.Letter, error) {
	left := slices.DeleteFunc(slices.Clone(letters), func(l outboxwatch.Letter) bool { return slices.Contains(done, l) })
	if len(left) == 0 {
		return nil, nil
	}
	tasks := make([]any, len(left))
	for i, l := range left {
		tasks[i] = l.TaskID
	}
	rows := map[string]bool{}
	query := fmt.Sprintf(`SELECT task_id FROM %s WHERE task_id IN (%s) LIMIT %d`, sqldb.Quote(t.table), list(len(tasks)), outboxwatch.MaxByTask)
	err := t.rows(query, tasks, func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		rows[id] = true
		return err
	})
	return slices.DeleteFunc(left, func(l outboxwatch.Letter) bool { return !rows[l.TaskID] }), err
}

// letters returns what a query with the list as its parameter returns, by id.
func (t *reader) letters(query, list string) (found []outboxwatch.Letter, err error) {
	err = t.rows(query, []any{list}, func(r *sql.Rows) error {
		var l outboxwatch.Letter
		err := r.Scan(&l.ID, &l.TaskID)
		found = append(found, l)
		return err
	})
	slices.SortFunc(found, func(a, b outboxwatch.Letter) int { return int(a.ID - b.ID) })
	return found, err
}

var _ outboxwatch.Changer = (*Outbox)(nil)
