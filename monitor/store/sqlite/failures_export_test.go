package sqlite

import "context"

// SweepFailures removes groups that are over.
func (d *DB) SweepFailures(ctx context.Context) error { return d.sweepFailures(ctx) }
