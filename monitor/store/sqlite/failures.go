package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
)

// Failures returns the groups that r asks for.
func (d *DB) Failures(context.Context, store.FailureRequest) (store.FailurePage, error) {
	return store.FailurePage{}, errors.New("not yet")
}

// Failure returns one group.
func (d *DB) Failure(context.Context, fingerprint.ID, time.Time) (store.Failure, error) {
	return store.Failure{}, errors.New("not yet")
}

// Resolve marks a group as resolved.
func (d *DB) Resolve(context.Context, fingerprint.ID, time.Time) error { return errors.New("not yet") }

// failure returns the group of a failed task, nil for any other.
func (t *tx) failure(*state.Task) (any, error) { return nil, nil } //nolint:nilnil // SQL's NULL
