package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/store"
)

var errOutbox = errors.New("not there yet") //nolint:gochecknoglobals

// Enqueue implements store.Outbox.
func (d *DB) Enqueue(ctx context.Context, o store.Order) (commands []store.Command, replayed bool, err error) {
	return nil, false, errOutbox
}

// Claim implements store.Outbox.
func (d *DB) Claim(ctx context.Context, now time.Time, limit int) ([]store.Command, error) {
	return nil, errOutbox
}

// Settle implements store.Outbox.
func (d *DB) Settle(ctx context.Context, now time.Time, outcomes []store.Outcome) error {
	return errOutbox
}

// Answer implements store.Outbox.
func (d *DB) Answer(ctx context.Context, id int64, now time.Time, answers []store.Answer, state store.CommandState) error {
	return errOutbox
}

// Reclaim implements store.Outbox.
func (d *DB) Reclaim(ctx context.Context, before time.Time) (int, error) {
	return 0, errOutbox
}

// Command implements store.Outbox.
func (d *DB) Command(ctx context.Context, id int64) (store.Command, error) {
	return store.Command{}, errOutbox
}

// Commands implements store.Outbox.
func (d *DB) Commands(ctx context.Context, f store.CommandFilter) (list []store.Command, next int64, err error) {
	return nil, 0, errOutbox
}

// Requeue implements store.Outbox.
func (d *DB) Requeue(ctx context.Context, ids []int64, now, expires time.Time, a store.Audit) (int, error) {
	return 0, errOutbox
}

// Discard implements store.Outbox.
func (d *DB) Discard(ctx context.Context, ids []int64, now time.Time, a store.Audit) (int, error) {
	return 0, errOutbox
}

// OutboxStats implements store.Outbox.
func (d *DB) OutboxStats(ctx context.Context) (store.OutboxStats, error) {
	return store.OutboxStats{}, errOutbox
}

// Audit implements store.Outbox.
func (d *DB) Audit(ctx context.Context, before int64, limit int) (list []store.Audit, next int64, err error) {
	return nil, 0, errOutbox
}

// VerifyAudit implements store.Outbox.
func (d *DB) VerifyAudit(ctx context.Context) (int64, error) {
	return 0, errOutbox
}
