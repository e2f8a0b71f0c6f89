package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/tasktext"
	"github.com/umbelhq/umbel/monitor/history/trigram"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
)

const (
	maxIndexed    = 4096                  // tasks in one transaction
	minIndexed    = maxIndexed / 8        // that make one due
	indexPause    = 10 * time.Second      // after which fewer make one due
	indexInterval = time.Second           // between searches for work
	indexBusy     = 50 * time.Millisecond // the same while much is to do
	indexAge      = 30 * time.Second      // an active task is indexed once it has not changed for so long
)

// metaIndexed is the key of the table meta for the greatest tasks.task that indexing has come to.
const metaIndexed = "indexed"

// indexedTo is the greatest tasks.task that indexing has come to, in SQL.
const indexedTo = `coalesce((SELECT value FROM meta WHERE key = '` + metaIndexed + `'), 0)`

// indexer adds texts to the text index. Finished tasks come first, since the text of active ones changes soon.
type indexer struct {
	db     *DB
	stable [2]int64 // greatest clock of a task up to 2 and 1 indexAge ago
	aged   time.Time
	last   time.Time // when all was indexed
	reader state.Reader
}

// indexLoop adds texts to the text index until ctx ends, at most half of the time.
func (d *DB) indexLoop(ctx context.Context) error {
	x := &indexer{db: d}
	return tables.Repeat(ctx, func() time.Duration {
		begin := d.now()
		more, err := x.step(ctx, begin)
		took := d.now().Sub(begin)
		switch {
		case err != nil && ctx.Err() == nil:
			d.log.Warn("text indexing failed", "error", err)
			return 10 * indexInterval
		case more:
			return min(max(took, indexBusy), indexInterval)
		default:
			return indexInterval
		}
	})
}

// IndexAll indexes the texts of all tasks without pauses, which Run does beside everything else. After each step it tells how many
// it has indexed.
func (d *DB) IndexAll(ctx context.Context, progress func(indexed int)) error {
	return d.indexAll(ctx, maxIndexed, progress)
}

// indexAll is IndexAll in steps of at most n tasks.
func (d *DB) indexAll(ctx context.Context, n int, progress func(indexed int)) error {
	x := &indexer{db: d}
	for indexed := 0; ; progress(indexed) {
		done, err := x.some(ctx, n, math.MaxInt64)
		if done == 0 || err != nil {
			return err
		}
		indexed += done
	}
}

// step indexes some texts if that is due, and reports whether there may be more.
func (x *indexer) step(ctx context.Context, now time.Time) (more bool, err error) {
	d := x.db
	if now.Sub(x.aged).Abs() >= indexAge {
		found, err := tables.Number[int64](ctx, d.read, `SELECT coalesce(max(clock), 0) FROM tasks`)
		if err != nil {
			return false, err
		}
		x.aged, x.stable = now, [2]int64{x.stable[1], found}
	}
	waiting, err := x.waiting(ctx)
	if err != nil {
		return false, err
	}
	d.unindexed.Store(waiting)
	if waiting == 0 || waiting < minIndexed && now.Sub(x.last).Abs() < indexPause {
		return false, nil
	}
	done, err := x.some(ctx, maxIndexed, x.stable[0])
	if err != nil || done == maxIndexed {
		return err == nil, err
	}
	x.last = now
	return false, nil
}

// waiting returns about how many tasks are not indexed.
func (x *indexer) waiting(ctx context.Context) (int64, error) {
	return tables.Number[int64](ctx, x.db.read, `SELECT (SELECT count(*) FROM unindexed)
		+ max(coalesce((SELECT max(task) FROM tasks), 0) - `+indexedTo+`, 0)`)
}

// some indexes at most n tasks: finished ones, then active ones whose clock is not above stable. It reads them before it waits for
// other writers.
func (x *indexer) some(ctx context.Context, n int, stable int64) (done int, err error) {
	defer annotate(&err, "index texts")
	d := x.db
	b := textBatch{indexer: x}
	err = d.update(ctx, func(t *tx) (err error) {
		if b.begin, err = t.indexedTo(); err != nil {
			return err
		}
		err = t.get(`SELECT coalesce(max(task), 0) FROM (SELECT task FROM tasks WHERE task > ? ORDER BY task LIMIT ?)`, []any{b.begin, n}, &b.last)
		d.indexing = b.last
		return err
	})
	if err == nil {
		err = d.snapshot(ctx, func(q tables.Reader) error { return b.read(ctx, q, n, stable) })
	}
	if err == nil && b.done > 0 {
		segments := b.segments()
		err = d.update(ctx, func(t *tx) error { return b.write(t, segments) })
	}
	if err == nil {
		err = d.mergeSegments(ctx)
	}
	return b.done, err
}

// textBatch is what one transaction adds to the text index.
type textBatch struct {
	*indexer

	begin, last, end int64      // the tasks that can be indexed for the first time are between begin and last; end is the last that is
	done             int        // tasks that were looked at
	again            []taskText // that are in unindexed
	first            []taskText
	early            []int64 // active tasks up to end, which are indexed later
}

// taskText is the text of a task.
type taskText struct {
	task, final, clock int64
	text               string
}

func (b *textBatch) read(ctx context.Context, q tables.Reader, n int, stable int64) error {
	const (
		columns = `SELECT tasks.task, tasks.final, tasks.clock, id, body FROM `
		again   = columns + `unindexed u INDEXED BY unindexed_by_clock JOIN tasks USING (task) JOIN events USING (task) WHERE `
	)
	texts, err := b.list(ctx, q, again+`u.final > 0 LIMIT ?`, n)
	if err != nil {
		return err
	}
	active, err := b.list(ctx, q, again+`u.final = 0 AND u.clock <= ? LIMIT ?`, stable, n-len(texts))
	if err != nil {
		return err
	}
	b.again = slices.Concat(texts, active)
	b.done = len(b.again)
	first, err := b.list(ctx, q, columns+`tasks JOIN events USING (task) WHERE tasks.task > ? AND tasks.task <= ? ORDER BY tasks.task LIMIT ?`,
		b.begin, b.last, n-b.done)
	b.done += len(first)
	for _, v := range first {
		if b.end = v.task; v.final != where.ClassActive {
			b.first = append(b.first, v)
		} else {
			b.early = append(b.early, v.task)
		}
	}
	return err
}

// list reads the texts of tasks.
func (b *textBatch) list(ctx context.Context, q tables.Reader, query string, args ...any) (found []taskText, err error) {
	err = tables.EachRow(ctx, q, query, args, func(rows *sql.Rows) error {
		var v taskText
		var id any
		var events sql.RawBytes
		if err := rows.Scan(&v.task, &v.final, &v.clock, &id, &events); err != nil {
			return err
		}
		view, err := b.reader.Task(idText(id), events)
		if err != nil {
			b.db.log.Warn("text of a task is unreadable", "id", idText(id), "error", err)
		}
		v.text = tasktext.Searchable(&view)
		found = append(found, v)
		return nil
	})
	return found, err
}

// blockSegment is a segment of a block.
type blockSegment struct {
	block int64
	trigram.Segment
}

// segments returns a segment for each block that texts are in.
func (b *textBatch) segments() (list []blockSegment) {
	texts := slices.SortedFunc(slices.Values(slices.Concat(b.again, b.first)), func(a, b taskText) int { return cmp.Compare(a.task, b.task) })
	texts = slices.CompactFunc(texts, func(a, b taskText) bool { return a.task == b.task })
	var builder trigram.Builder
	for i, v := range texts {
		builder.Add(uint16(v.task%trigram.Documents), v.text)
		block := v.task / trigram.Documents
		if i == len(texts)-1 || texts[i+1].task/trigram.Documents != block {
			list = append(list, blockSegment{block, builder.Segment()})
		}
	}
	return list
}

// write writes segments, and notes what is indexed. A task that has changed since it was read stays to be indexed again.
func (b *textBatch) write(t *tx, segments []blockSegment) error {
	for _, s := range segments {
		if err := t.addSegment(s); err != nil {
			return err
		}
	}
	for _, v := range b.again {
		if err := t.exec(`DELETE FROM unindexed WHERE task = ? AND clock = ? AND final = ?`, v.task, v.clock, v.final); err != nil {
			return err
		}
	}
	for _, task := range b.early {
		if err := t.exec(`INSERT OR IGNORE INTO unindexed SELECT task, final, clock FROM tasks WHERE task = ?`, task); err != nil {
			return err
		}
	}
	if b.end == 0 {
		return nil
	}
	return t.setIndexedTo(b.end)
}

// indexedTo returns the greatest tasks.task that indexing has come to.
func (t *tx) indexedTo() (to int64, err error) {
	if t.textsTo == nil {
		if err := t.get(`SELECT `+indexedTo, nil, &to); err != nil {
			return 0, err
		}
		t.textsTo = &to
	}
	return *t.textsTo, nil
}

// textChanged notes that a task was saved: it is to be indexed again if indexing is beyond it already.
func (t *tx) textChanged(task, final, clock int64) error {
	to, err := t.indexedTo()
	if err != nil || task > max(to, t.db.indexing) {
		return err
	}
	return t.exec(`INSERT INTO unindexed (task, final, clock) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET final = excluded.final, clock = excluded.clock`, task, final, clock)
}

// textsRemoved notes that tasks were removed.
func (t *tx) textsRemoved(tasks []int64) error {
	to, err := t.indexedTo()
	if err != nil {
		return err
	}
	stale := map[int64]int{} // by block
	for _, task := range tasks {
		if task <= to {
			stale[task/trigram.Documents]++
			if err := t.exec(`DELETE FROM unindexed WHERE task = ?`, task); err != nil {
				return err
			}
		}
	}
	for block, n := range stale {
		if err := t.exec(`INSERT INTO text_stale (block, tasks) VALUES (?, ?) ON CONFLICT DO UPDATE SET tasks = tasks + excluded.tasks`, block, n); err != nil {
			return err
		}
	}
	return nil
}

// forgetTexts empties the text index. All tasks are indexed again.
func (t *tx) forgetTexts() error {
	for _, table := range []string{"text_segments", "text_pages", "text_stale", "unindexed"} {
		if err := t.exec(`DELETE FROM ` + table); err != nil {
			return err
		}
	}
	return t.setIndexedTo(0)
}

func (t *tx) setIndexedTo(task int64) error {
	t.textsTo = &task
	return t.set(metaIndexed, task)
}
