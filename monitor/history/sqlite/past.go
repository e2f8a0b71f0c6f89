package sqlite

import (
	"bytes"
	"compress/flate"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
)

// Blocks of time, for tasks.block.
const (
	minBlock   = 16 // 65 ms
	maxBlock   = 51 // all time until 2041
	blockShift = 40
)

// blockOf returns the number of the smallest block that holds two times.
func blockOf(first, last int64) int64 {
	k := max(minBlock, min(maxBlock, bits.Len64(uint64(first^last))))
	return int64(k)<<blockShift | first>>k
}

// blocks returns the numbers of all blocks that hold a time.
func blocks(at int64) []int64 {
	var list []int64
	for k := minBlock; k <= maxBlock; k++ {
		list = append(list, int64(k)<<blockShift|at>>k)
	}
	return list
}

// around selects the tasks that the instant ?2 divides; ?1 are its blocks.
const around = `SELECT task FROM tasks INDEXED BY tasks_by_block
		WHERE block IN (SELECT value FROM json_each(?1)) AND first_receipt <= ?2 AND last_receipt > ?2 AND block IS NOT NULL
	UNION SELECT task FROM tasks INDEXED BY tasks_lost WHERE lost > ?2 AND ` + lastReceipt + ` <= ?2`

// TasksAround calls f with the saved events of the tasks that an instant divides.
func (d *DB) TasksAround(ctx context.Context, at int64, limit int, f func(id string, events []byte) error) (more bool, err error) {
	return d.eachTask(ctx, around+` LIMIT ?3`, limit, f, jsonArray(blocks(at)), at, limit+1)
}

// ActiveSince calls f with the saved events of the unfinished tasks of which nothing was received after an instant.
func (d *DB) ActiveSince(ctx context.Context, at int64, limit int, f func(id string, events []byte) error) (more bool, err error) {
	const active = `SELECT task FROM tasks INDEXED BY tasks_by_receipt WHERE final = 0 AND ` + lastReceipt + ` <= ?
		AND (lost IS NULL OR lost <= ?) ORDER BY ` + lastReceipt + ` DESC LIMIT ?`
	return d.eachTask(ctx, active, limit, f, at, at, limit+1)
}

// ChangedBetween calls f with the saved events of the tasks whose newest event was received after from and by to.
func (d *DB) ChangedBetween(ctx context.Context, from, to int64, limit int, f func(id string, events []byte) error) (more bool, err error) {
	const changed = `SELECT task FROM tasks INDEXED BY tasks_by_receipt WHERE final IN (0, 1, 2) AND ` + lastReceipt + ` > ? AND ` + lastReceipt + ` <= ? LIMIT ?`
	n, err := tables.Number[int](ctx, d.read, `SELECT count(*) FROM (`+changed+`)`, from, to, limit+1)
	if err != nil || n > limit {
		return n > limit, wrap("read past", err)
	}
	return d.eachTask(ctx, changed, limit, f, from, to, limit)
}

// eachTask calls f with the events of the first tasks that a statement selects, and reports whether it selects more.
func (d *DB) eachTask(ctx context.Context, selected string, limit int, f func(id string, events []byte) error, args ...any) (more bool, err error) {
	defer annotate(&err, "read past")
	err = d.snapshot(ctx, func(q tables.Reader) error {
		tasks, err := tables.List[int64](ctx, q, selected, args...)
		if err != nil {
			return err
		}
		if more = len(tasks) > limit; more {
			tasks = tasks[:limit]
		}
		return tables.EachRow(ctx, q, `SELECT id, body FROM tasks JOIN events USING (task) WHERE task IN (SELECT value FROM json_each(?))`,
			[]any{jsonArray(tasks)}, func(rows *sql.Rows) error {
				var id any
				var body []byte
				if err := rows.Scan(&id, &body); err != nil {
					return err
				}
				return f(idText(id), body)
			})
	})
	return more, err
}

// stepTasks is how many tasks Steps reads at most to find one event.
const stepTasks = 10_000

// Steps returns the newest receipt before an instant, and the next after it. Tasks of which all was received on one side of
// it have theirs in their rows. Of those that it divides, and of those that the next receipt found so far divides, the
// events are read: nothing else can be nearer.
func (d *DB) Steps(ctx context.Context, at int64) (before, after int64, err error) {
	defer annotate(&err, "read past")
	for _, final := range []int{where.ClassActive, where.ClassSucceeded, where.ClassFailed} {
		last, err := tables.Number[int64](ctx, d.read, `SELECT coalesce(max(`+lastReceipt+`), 0) FROM tasks WHERE final = ? AND `+lastReceipt+` < ?`, final, at)
		if err != nil {
			return 0, 0, err
		}
		next, err := tables.Number[int64](ctx, d.read, `SELECT coalesce(min(`+lastReceipt+`), 0) FROM tasks WHERE final = ? AND `+lastReceipt+` > ?`, final, at)
		if err != nil {
			return 0, 0, err
		}
		before = max(before, last)
		if after == 0 || next != 0 && next < after {
			after = next
		}
	}
	note := func(id string, events []byte) error {
		receipts, err := state.Receipts(id, events)
		for _, r := range receipts {
			switch {
			case r < at:
				before = max(before, r)
			case r > at && (after == 0 || r < after):
				after = r
			}
		}
		return err
	}
	if _, err := d.TasksAround(ctx, at, stepTasks, note); err != nil {
		return 0, 0, err
	}
	if _, err := d.TasksAround(ctx, at-1, stepTasks, note); err != nil {
		return 0, 0, err
	}
	if after != 0 {
		_, err = d.TasksAround(ctx, after-1, stepTasks, note)
	}
	return before, after, err
}

// Snapshot returns what was known at an instant beside tasks.
func (d *DB) Snapshot(ctx context.Context, at int64) (s history.Snapshot, err error) {
	defer annotate(&err, "read past")
	if s.Clock, err = tables.Number[int64](ctx, d.read,
		`SELECT coalesce((SELECT clock FROM snapshots WHERE at >= ? ORDER BY at LIMIT 1), 0)`, at); err != nil {
		return s, err
	}
	if s.Since, err = tables.Number[int64](ctx, d.read, `SELECT coalesce((SELECT value FROM meta WHERE key = ?), 0)`, metaReceipts); err != nil {
		return s, err
	}
	var body []byte
	err = d.read.QueryRowContext(ctx, `SELECT at, body FROM snapshots WHERE at <= ? AND body IS NOT NULL ORDER BY at DESC LIMIT 1`, at).Scan(&s.At, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.SnapshotBody, err = decodeSnapshot(body)
	return s, err
}

func decodeSnapshot(body []byte) (s history.SnapshotBody, err error) {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(body)))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, wrap("decode snapshot", err)
}

// snapshotSpan is how far apart snapshots of an age are kept.
type snapshotSpan struct{ age, clock, body time.Duration }

// snapshotSpans returns the spans, the youngest first. Beyond the last, snapshots are removed.
func snapshotSpans() [4]snapshotSpan {
	const day = 24 * time.Hour
	return [4]snapshotSpan{
		{2 * time.Hour, 0, time.Minute},
		{2 * day, 30 * time.Second, 5 * time.Minute},
		{35 * day, 2 * time.Minute, 10 * time.Minute},
		{400 * day, 10 * time.Minute, time.Hour},
	}
}

// maxBody is the size of a snapshot beyond which it is taken less often than once a minute, in proportion.
const maxBody = 8 << 10

// takeSnapshot keeps a snapshot of a checkpoint that was just saved.
func (t *tx) takeSnapshot(at int64, c *history.Checkpoint) error {
	if at == 0 {
		return nil
	}
	var last, size int64
	err := t.get(`SELECT at, length(body) FROM snapshots WHERE body IS NOT NULL ORDER BY at DESC LIMIT 1`, nil, &last, &size)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var body any
	if pause := snapshotSpans()[0].body.Microseconds() * (1 + size/maxBody); at-last >= pause || at < last {
		if body, err = t.snapshotBody(c); err != nil {
			return err
		}
		if err := t.thinSnapshots(at); err != nil {
			return err
		}
	}
	return t.exec(`INSERT INTO snapshots (at, clock, body) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET clock = max(clock, excluded.clock)`,
		at, c.Clock, body)
}

func (t *tx) snapshotBody(c *history.Checkpoint) ([]byte, error) {
	s := history.SnapshotBody{Counts: c.Counts}
	err := t.each(`SELECT body FROM workers ORDER BY name`, nil, func(rows *sql.Rows) error {
		s.Workers = append(s.Workers, "")
		return rows.Scan(&s.Workers[len(s.Workers)-1])
	})
	if err != nil {
		return nil, err
	}
	return encodeSnapshot(s)
}

func encodeSnapshot(s history.SnapshotBody) ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// thinSnapshots keeps, of the snapshots of an age, the last of each span.
func (t *tx) thinSnapshots(now int64) error {
	const later = `EXISTS (SELECT 1 FROM snapshots s WHERE s.at > snapshots.at AND s.at < (snapshots.at / ?3 + 1) * ?3`
	spans := snapshotSpans()
	for i, s := range spans[1:] {
		from, to := now-s.age.Microseconds(), now-spans[i].age.Microseconds()
		from = max(from, to-spans[1].age.Microseconds()) // older ones are thinned already
		if err := t.exec(`UPDATE snapshots SET body = NULL WHERE at > ?1 AND at <= ?2 AND body IS NOT NULL AND `+later+` AND s.body IS NOT NULL)`,
			from, to, s.body.Microseconds()); err != nil {
			return err
		}
		if err := t.exec(`DELETE FROM snapshots WHERE at > ?1 AND at <= ?2 AND body IS NULL AND `+later+`)`,
			from, to, s.clock.Microseconds()); err != nil {
			return err
		}
	}
	return t.exec(`DELETE FROM snapshots WHERE at <= ?`, now-spans[len(spans)-1].age.Microseconds())
}
