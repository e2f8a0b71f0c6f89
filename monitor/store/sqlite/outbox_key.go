package sqlite

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/store"
)

// Replay implements store.Outbox.
func (d *DB) Replay(ctx context.Context, key, print string, now time.Time) (commands []store.Command, ok bool, err error) {
	err = d.change(ctx, "look for an idempotency key", func(t *tx) error {
		first, known, err := t.keyed(store.Order{Key: key, Print: print, Audit: store.Audit{At: now}})
		if err == nil && known {
			commands, err = t.order(first)
			ok = true
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return commands, ok, nil
}
