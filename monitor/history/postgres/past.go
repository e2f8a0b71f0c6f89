package postgres

import (
	"bytes"
	"compress/flate"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

// around selects the tasks that the instant ?1 divides, at most ?2.
const around = `SELECT id, body FROM tasks WHERE first_receipt < last_receipt AND int8range(first_receipt, last_receipt) @> ?1::bigint
	UNION ALL SELECT id, body FROM tasks WHERE lost > ?1 AND last_receipt <= ?1 LIMIT ?2`

// TasksAround calls f with the saved events of the tasks that an instant divides.
func (d *DB) TasksAround(ctx context.Context, at int64, limit int, f func(id string, events []byte) error) (more bool, err error) {
	return d.eachUpTo(ctx, around, limit, f, at, limit+1)
}

// ActiveSince calls f with the saved events of the unfinished tasks of which nothing was received after an instant.
func (d *DB) ActiveSince(ctx context.Context, at int64, limit int, f func(id string, events []byte) error) (more bool, err error) {
	const active = `SELECT id, body FROM tasks WHERE final = 0 AND last_receipt <= ?1 AND (lost IS NULL OR lost <= ?1)
		ORDER BY last_receipt DESC LIMIT ?2`
	return d.eachUpTo(ctx, active, limit, f, at, limit+1)
}

// ChangedBetween calls f with the saved events of the tasks whose newest event was received after from and by to.
func (d *DB) ChangedBetween(ctx context.Context, from, to int64, limit int, f func(id string, events []byte) error) (more bool, err error) {
	const changed = ` FROM tasks WHERE last_receipt > ? AND last_receipt <= ? LIMIT ?`
	n, err := tables.Number[int](ctx, d.read, `SELECT count(*) FROM (SELECT 1`+changed+`) AS found`, from, to, limit+1)
	if err != nil || n > limit {
		return n > limit, wrap("read past", err)
	}
	return d.eachUpTo(ctx, `SELECT id, body`+changed, limit, f, from, to, limit)
}

// eachUpTo calls f with the first tasks that a query finds, and reports whether it finds more.
func (d *DB) eachUpTo(ctx context.Context, query string, limit int, f func(id string, events []byte) error, args ...any) (more bool, err error) {
	defer annotate(&err, "read past")
	n := 0
	err = eachTask(ctx, d.read, query, args, func(id string, events []byte) error {
		if n++; n > limit {
			return errStop
		}
		return f(id, events)
	})
	if errors.Is(err, errStop) {
		return true, nil
	}
	return false, err
}

// stepTasks is how many tasks Steps reads at most to find one event.
const stepTasks = 10_000

// Steps returns the newest receipt before an instant, and the next after it. Tasks of which all was received on one side of
// it have theirs in their rows. Of those that it divides, and of those that the next receipt found so far divides, the
// events are read: nothing else can be nearer.
func (d *DB) Steps(ctx context.Context, at int64) (before, after int64, err error) {
	defer annotate(&err, "read past")
	err = d.read.QueryRowContext(ctx, `SELECT coalesce((SELECT max(last_receipt) FROM tasks WHERE last_receipt < $1), 0),
		coalesce((SELECT min(last_receipt) FROM tasks WHERE last_receipt > $1), 0)`, at).Scan(&before, &after)
	if err != nil {
		return 0, 0, err
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
		`SELECT coalesce((SELECT clock FROM snapshots WHERE at >= $1 ORDER BY at LIMIT 1), 0)`, at); err != nil {
		return s, err
	}
	var body []byte
	err = d.read.QueryRowContext(ctx, `SELECT at, body FROM snapshots WHERE at <= $1 AND body IS NOT NULL ORDER BY at DESC LIMIT 1`, at).Scan(&s.At, &body)
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
	err := t.Get(`SELECT at, length(body) FROM snapshots WHERE body IS NOT NULL ORDER BY at DESC LIMIT 1`, nil, &last, &size)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var body []byte
	if pause := snapshotSpans()[0].body.Microseconds() * (1 + size/maxBody); at-last >= pause || at < last {
		if body, err = t.snapshotBody(c); err != nil {
			return err
		}
		if err := t.thinSnapshots(at); err != nil {
			return err
		}
	}
	return t.Exec(`INSERT INTO snapshots (at, clock, body) VALUES ($1, $2, $3)
		ON CONFLICT (at) DO UPDATE SET clock = greatest(snapshots.clock, excluded.clock)`, at, c.Clock, body)
}

func (t *tx) snapshotBody(c *history.Checkpoint) ([]byte, error) {
	s := history.SnapshotBody{Counts: c.Counts}
	var err error
	if s.Workers, err = tables.List[string](t.ctx, t.Tx, `SELECT body FROM workers ORDER BY name`); err != nil {
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
		if err := t.Exec(`UPDATE snapshots SET body = NULL WHERE at > ?1 AND at <= ?2 AND body IS NOT NULL AND `+later+` AND s.body IS NOT NULL)`,
			from, to, s.body.Microseconds()); err != nil {
			return err
		}
		if err := t.Exec(`DELETE FROM snapshots WHERE at > ?1 AND at <= ?2 AND body IS NULL AND `+later+`)`,
			from, to, s.clock.Microseconds()); err != nil {
			return err
		}
	}
	return t.Exec(`DELETE FROM snapshots WHERE at <= $1`, now-spans[len(spans)-1].age.Microseconds())
}
