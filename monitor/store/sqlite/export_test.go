package sqlite

import (
	"context"
	"math"
)

// Index indexes the texts of all tasks.
func (d *DB) Index(ctx context.Context) error {
	for {
		n, err := d.indexSome(ctx, indexMost, math.MaxInt64)
		if n < indexMost || err != nil {
			return err
		}
	}
}
