package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/state/query"
)

// Tasks returns a page of the tasks that match.
func (d *DB) Tasks(context.Context, store.Request) (store.Page, error) {
	return store.Page{}, errors.New("not yet")
}

// Count returns how many match, exactly up to limit.
func (d *DB) Count(context.Context, query.Query, time.Time, int) (store.Count, error) {
	return store.Count{}, errors.New("not yet")
}

// Values returns values that a field has.
func (d *DB) Values(context.Context, query.Field, string, int) ([]string, error) {
	return nil, errors.New("not yet")
}

// index fills the index of texts until ctx ends.
func (d *DB) index(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
