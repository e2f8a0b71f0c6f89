package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/store"
)

// Rules returns the rules in force.
func (d *DB) Rules() store.Rules { return d.rules }

// Today is the moment that ages are measured against.
func (d *DB) Today(context.Context) (time.Time, error) { return d.now(), nil }

// Prunable says what the rules would remove now.
func (d *DB) Prunable(context.Context, time.Time) (store.Plan, error) {
	return store.Plan{}, errors.New("not yet")
}

// Prune removes what the rules say.
func (d *DB) Prune(context.Context, time.Time, func(store.Pruned)) error {
	return errors.New("not yet")
}

// retain removes what the rules say until ctx ends.
func (d *DB) retain(ctx context.Context, _ func(ids []string)) error {
	<-ctx.Done()
	return nil
}
