package sqlite

import (
	"context"
	"math"
)

// IndexAll indexes the texts of all tasks without pauses, which Run does beside everything else. After each step it tells how many
// it has indexed.
func (d *DB) IndexAll(ctx context.Context, progress func(indexed int)) error {
	x := &indexer{db: d}
	for indexed := 0; ; {
		n, err := x.some(ctx, maxIndexed, math.MaxInt64)
		if n == 0 || err != nil {
			return err
		}
		indexed += n
		progress(indexed)
	}
}
