package tables

import (
	"context"
	"database/sql"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/fingerprint"
)

// ResolveFailureGroup marks a group as resolved, or reopens it.
func (d Store) ResolveFailureGroup(ctx context.Context, id fingerprint.ID, at time.Time) (err error) {
	defer d.engine.Annotate(&err, "resolve failure group")
	defer d.engine.Failures().Forget()
	err = d.update(ctx, func(t tx) error {
		return t.Get(`UPDATE failures SET resolved = ? WHERE failure = ? RETURNING failure`, []any{Micros(at), int64(id)}, new(int64))
	})
	return NotFound(err)
}

// NoteFailureGroup changes what people note about a group.
func (d Store) NoteFailureGroup(ctx context.Context, id fingerprint.ID, n history.FailureNote) (err error) {
	defer d.engine.Annotate(&err, "note failure group")
	defer d.engine.Failures().Forget()
	at := n.At.UnixMicro()
	err = d.update(ctx, func(t tx) error {
		if n.Text != nil {
			by, when := n.By, any(at)
			if *n.Text == "" {
				by, when = "", nil
			}
			if err := t.Get(`UPDATE failures SET note = ?, note_by = ?, note_at = ? WHERE failure = ? RETURNING failure`,
				[]any{*n.Text, by, when, int64(id)}, new(int64)); err != nil {
				return err
			}
		}
		if n.Assignee == nil {
			return nil
		}
		return t.Get(`UPDATE failures SET assignee = ?, assigned_at = ? WHERE failure = ? RETURNING failure`,
			[]any{*n.Assignee, at, int64(id)}, new(int64))
	})
	return NotFound(err)
}

// ResolvedFailures returns when groups were resolved last.
func (d Store) ResolvedFailures(ctx context.Context) (resolved map[fingerprint.ID]time.Time, err error) {
	defer d.engine.Annotate(&err, "read resolved failures")
	resolved = make(map[fingerprint.ID]time.Time)
	err = EachRow(ctx, d.engine.Reader(), `SELECT failure, resolved FROM failures WHERE resolved IS NOT NULL`, nil, func(rows *sql.Rows) error {
		var id, at int64
		err := rows.Scan(&id, &at)
		resolved[fingerprint.ID(id)] = time.UnixMicro(at).UTC()
		return err
	})
	return resolved, err
}
