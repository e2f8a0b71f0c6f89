package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math/bits"

	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/trigram"
)

// segmentPages is how many pages a segment can have, as text_pages.page numbers them.
const segmentPages = 1 << 16

func (t *tx) addSegment(s blockSegment) error {
	segment, err := t.insert(`INSERT INTO text_segments (block, tasks, head) VALUES (?, ?, ?)`, s.block, s.Documents, s.Head)
	for i := 0; i < len(s.Pages) && err == nil; i++ {
		err = t.exec(`INSERT INTO text_pages (page, body) VALUES (?, ?)`, segment*segmentPages+int64(i), s.Pages[i])
	}
	return err
}

// segment is a row of text_segments.
type segment struct {
	number, block int64
	*trigram.Reader
}

// segments opens segments.
func segments(ctx context.Context, q tables.Reader, where string, args ...any) (list []segment, err error) {
	err = tables.EachRow(ctx, q, `SELECT segment, block, head FROM text_segments WHERE `+where, args, func(rows *sql.Rows) (err error) {
		var s segment
		var head []byte
		if err := rows.Scan(&s.number, &s.block, &head); err != nil {
			return err
		}
		s.Reader, err = trigram.Open(head, func(n int) (body []byte, err error) {
			found := false
			err = tables.EachRow(ctx, q, `SELECT body FROM text_pages WHERE page = ?`, []any{s.number*segmentPages + int64(n)}, func(rows *sql.Rows) error {
				found = true
				return rows.Scan(&body)
			})
			if err == nil && !found {
				err = trigram.ErrDamaged
			}
			return body, err
		})
		list = append(list, s)
		return err
	})
	return list, err
}

// mergeAtOnce is how many segments of about a size are merged to one: each task is written anew log n / log 8 times.
const mergeAtOnce = 8

// mergeSegments merges segments of a block that are many for their size. Those of a block that is full become one.
func (d *DB) mergeSegments(ctx context.Context) error {
	for {
		block, some, err := d.mergeable(ctx)
		if err != nil || len(some) == 0 {
			return err
		}
		if err := d.rewriteSegments(ctx, block, some, nil); err != nil {
			return err
		}
	}
}

// mergeable returns segments that are to be merged, none if there are none.
func (d *DB) mergeable(ctx context.Context) (block int64, merge []int64, err error) {
	type rows struct {
		segments       []int64
		largest, tasks int64
		bySize         [64][]int64
	}
	newest := int64(0)
	blocks := map[int64]*rows{}
	err = tables.EachRow(ctx, d.read, `SELECT segment, block, tasks FROM text_segments`, nil, func(found *sql.Rows) error {
		var number, of, tasks int64
		if err := found.Scan(&number, &of, &tasks); err != nil {
			return err
		}
		b := blocks[of]
		if b == nil {
			b = new(rows)
			blocks[of] = b
		}
		size := bits.Len64(uint64(tasks)) / 3
		b.segments, b.bySize[size] = append(b.segments, number), append(b.bySize[size], number)
		b.largest, b.tasks, newest = max(b.largest, tasks), b.tasks+tasks, max(newest, of)
		return nil
	})
	for block, b := range blocks {
		if block < newest && len(b.segments) > 1 && b.largest < b.tasks/2 {
			return block, b.segments, err
		}
		for _, some := range b.bySize {
			if len(some) >= mergeAtOnce {
				return block, some, err
			}
		}
	}
	return 0, nil, err
}

// cleanSegments rewrites the segments of blocks of which a quarter was removed.
func (d *DB) cleanSegments(ctx context.Context) error {
	var blocks, stale []int64
	err := tables.EachRow(ctx, d.read, `SELECT block, text_stale.tasks FROM text_stale
		WHERE text_stale.tasks * 4 >= (SELECT total(tasks) FROM text_segments s WHERE s.block = text_stale.block)`, nil, func(rows *sql.Rows) error {
		var block, n int64
		err := rows.Scan(&block, &n)
		blocks, stale = append(blocks, block), append(stale, n)
		return err
	})
	for i := 0; i < len(blocks) && err == nil; i++ {
		err = d.cleanBlock(ctx, blocks[i], stale[i])
	}
	return err
}

// cleanBlock rewrites the segments of a block, of which n tasks were removed.
func (d *DB) cleanBlock(ctx context.Context, block, n int64) error {
	numbers, err := tables.List[int64](ctx, d.read, `SELECT segment FROM text_segments WHERE block = ?`, block)
	if err != nil {
		return err
	}
	var keep trigram.Set
	first := block * trigram.Documents
	err = tables.EachRow(ctx, d.read, `SELECT task FROM tasks WHERE task BETWEEN ? AND ?`, []any{first, first + trigram.Documents - 1}, func(rows *sql.Rows) error {
		var task int64
		err := rows.Scan(&task)
		keep.Add(uint16(task - first))
		return err
	})
	if err == nil {
		err = d.rewriteSegments(ctx, block, numbers, &keep)
	}
	if err != nil {
		return err
	}
	return d.update(ctx, func(t *tx) error {
		if err := t.exec(`UPDATE text_stale SET tasks = tasks - ? WHERE block = ?`, n, block); err != nil {
			return err
		}
		return t.exec(`DELETE FROM text_stale WHERE block = ? AND tasks <= 0`, block)
	})
}

// rewriteSegments replaces segments of a block by one. keep is as for trigram.Merge. It reads before it waits for other writers,
// and leaves the segments alone if they have changed meanwhile.
func (d *DB) rewriteSegments(ctx context.Context, block int64, numbers []int64, keep *trigram.Set) error {
	var merged trigram.Segment
	err := d.snapshot(ctx, func(q tables.Reader) error {
		found, err := segments(ctx, q, `segment IN (SELECT value FROM json_each(?))`, jsonArray(numbers))
		if err != nil {
			return err
		}
		readers := make([]*trigram.Reader, len(found))
		for i, s := range found {
			readers[i] = s.Reader
		}
		merged, err = trigram.Merge(readers, keep)
		return err
	})
	if err != nil {
		return err
	}
	err = d.update(ctx, func(t *tx) error {
		for _, number := range numbers {
			n, err := t.change(`DELETE FROM text_segments WHERE segment = ?`, number)
			if err != nil {
				return err
			}
			if n == 0 {
				return errSegmentsChanged
			}
			if err := t.exec(`DELETE FROM text_pages WHERE page BETWEEN ? AND ?`, number*segmentPages, (number+1)*segmentPages-1); err != nil {
				return err
			}
		}
		if merged.Documents == 0 {
			return nil
		}
		return t.addSegment(blockSegment{block, merged})
	})
	if errors.Is(err, errSegmentsChanged) {
		return nil
	}
	return err
}

var errSegmentsChanged = errors.New("segments have changed")
