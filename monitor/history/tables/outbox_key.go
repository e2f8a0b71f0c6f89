package tables

import (
	"context"
	"database/sql"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// keyAge is how long idempotency keys are remembered.
const keyAge = 24 * time.Hour

// CommandsByKey implements history.Outbox.
func (d Store) CommandsByKey(ctx context.Context, key, fingerprint string, now time.Time) (commands []history.Command, ok bool, err error) {
	defer d.engine.Annotate(&err, "look for an idempotency key")
	err = d.engine.Snapshot(ctx, func(q Reader) error {
		var first int64
		if first, ok, err = requestByKey(ctx, q, key, fingerprint, now); err == nil && ok {
			commands, err = requestCommands(ctx, q, first)
		}
		return err
	})
	return commands, ok, err
}

// requestByKey returns the request that a key was used for, false if there is none.
func requestByKey(ctx context.Context, q Reader, key, fingerprint string, now time.Time) (first int64, ok bool, err error) {
	var known string
	err = EachRow(ctx, q, `SELECT print, first FROM idempotency WHERE key = ? AND at > ?`,
		[]any{key, now.Add(-keyAge).UnixMicro()}, func(rows *sql.Rows) error {
			ok = true
			return rows.Scan(&known, &first)
		})
	if err == nil && ok && known != fingerprint {
		err = history.ErrKeyReused
	}
	return first, ok, err
}

// rememberKey records the key of a request, and removes keys that are too old.
func (t tx) rememberKey(o history.CommandRequest, first int64) error {
	err := t.Exec(`DELETE FROM idempotency WHERE at <= ?`, o.Audit.At.Add(-keyAge).UnixMicro())
	if err != nil {
		return err
	}
	return t.Exec(`INSERT INTO idempotency (key, print, first, at) VALUES (?, ?, ?, ?)`,
		o.IdempotencyKey, o.Fingerprint, first, o.Audit.At.UnixMicro())
}

// requestCommands returns the commands of a request by ID.
func requestCommands(ctx context.Context, q Reader, first int64) ([]history.Command, error) {
	return commandsOf(ctx, q, `WHERE first = ? ORDER BY command`, first)
}
