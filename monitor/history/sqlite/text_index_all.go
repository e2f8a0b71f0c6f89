package sqlite

import (
	"context"
	"math"
)

// IndexAll indexes the texts of all tasks without pauses, which Run does beside everything else. After each step it tells how many
// it has indexed.
func (d *DB) IndexAll(ctx context.Context, progress func(indexed int)) error {
	for indexed := 0; ; {
		n, err := d.indexSome(ctx, maxIndexed, math.MaxInt64)
		if err != nil {
			return err
		}
		indexed += n
		progress(indexed)
		if n < maxIndexed {
			return nil
		}
	}
}
