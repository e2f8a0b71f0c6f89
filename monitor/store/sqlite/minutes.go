package sqlite

import (
	"context"
	"errors"

	"github.com/umbelhq/umbel/monitor/store"
)

// Minutes calls f with every cell that r selects, oldest first.
func (d *DB) Minutes(context.Context, store.MinuteRange, func(store.Minute) error) error {
	return errors.New("not yet")
}

// minutes adds cells to those that are stored.
func (t *tx) minutes([]store.Minute) error { return nil }
