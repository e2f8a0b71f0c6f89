package sqlite

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// Requeue implements history.Outbox.
func (d *DB) Requeue(ctx context.Context, ids []int64, now, expires time.Time, a history.AuditRecord) (int, error) {
	return d.move(ctx, "requeue commands", ids, a, func(t *tx, id int64) (int64, error) {
		return t.affected(`UPDATE outbox SET state = 'pending', attempts = 0, deferrals = 0, due = ?, expires = ?, done = NULL
			WHERE command = ? AND state = 'dead' AND schema = ?`, now.UnixMicro(), micros(expires), id, history.CommandSchema)
	})
}

// Discard implements history.Outbox.
func (d *DB) Discard(ctx context.Context, ids []int64, now time.Time, a history.AuditRecord) (int, error) {
	return d.move(ctx, "discard commands", ids, a, func(t *tx, id int64) (int64, error) {
		return t.affected(`UPDATE outbox SET state = 'discarded', done = ? WHERE command = ? AND state IN ('dead', 'pending')`,
			now.UnixMicro(), id)
	})
}

// move has f move commands to another state, removes their dead letters and writes the record if any was moved.
func (d *DB) move(
	ctx context.Context, what string, ids []int64, a history.AuditRecord, f func(t *tx, id int64) (int64, error),
) (int, error) {
	if a.At.IsZero() {
		a.At = d.now()
	}
	err := d.change(ctx, what, func(t *tx) error {
		a.Commands, a.FirstCommand = 0, 0
		for _, id := range ids {
			n, err := f(t, id)
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			if err := t.exec(`DELETE FROM dead_letters WHERE command = ?`, id); err != nil {
				return err
			}
			if a.Commands++; a.FirstCommand == 0 {
				a.FirstCommand = id
			}
		}
		if a.Commands == 0 {
			return nil
		}
		return t.audit(a)
	})
	if err != nil {
		return 0, err
	}
	return a.Commands, nil
}

// affected runs a statement and returns how many rows it has changed.
func (t *tx) affected(query string, args ...any) (int64, error) {
	s, err := t.stmt(query) //nolint:sqlclosecheck // the transaction closes it
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}
