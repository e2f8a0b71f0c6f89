package tables

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// Requeue implements history.Outbox.
func (d Store) Requeue(ctx context.Context, ids []int64, now, expires time.Time, a history.AuditRecord) (int, error) {
	return d.move(ctx, "requeue commands", ids, a, func(t tx, id int64) (int, error) {
		return t.Change(`UPDATE outbox SET state = 'pending', attempts = 0, deferrals = 0, due = ?, expires = ?, done = NULL
			WHERE command = ? AND state = 'dead' AND schema = ?`, now.UnixMicro(), Micros(expires), id, history.CommandSchema)
	})
}

// Discard implements history.Outbox.
func (d Store) Discard(ctx context.Context, ids []int64, now time.Time, a history.AuditRecord) (int, error) {
	return d.move(ctx, "discard commands", ids, a, func(t tx, id int64) (int, error) {
		return t.Change(`UPDATE outbox SET state = 'discarded', done = ? WHERE command = ? AND state IN ('dead', 'pending')`,
			now.UnixMicro(), id)
	})
}

// move has f move commands to another state, removes their dead letters and writes the record if any was moved.
func (d Store) move(
	ctx context.Context, what string, ids []int64, a history.AuditRecord, f func(t tx, id int64) (int, error),
) (int, error) {
	if a.At.IsZero() {
		a.At = d.engine.Now()
	}
	err := d.change(ctx, what, func(t tx) error {
		a.Commands, a.FirstCommand = 0, 0
		for _, id := range ids {
			n, err := f(t, id)
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			if err := t.Exec(`DELETE FROM dead_letters WHERE command = ?`, id); err != nil {
				return err
			}
			if a.Commands++; a.FirstCommand == 0 {
				a.FirstCommand = id
			}
		}
		if a.Commands == 0 {
			return nil
		}
		return WriteAudit(t.Tx, a)
	})
	if err != nil {
		return 0, err
	}
	return a.Commands, nil
}
