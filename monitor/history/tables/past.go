package tables

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
	"github.com/umbelhq/umbel/state"
)

// metaReceipts is the key of the table meta for the time from when on receipts are kept, if the history is older.
const metaReceipts = "receipts"

// Snapshot returns what was known at an instant beside tasks.
func (d Store) Snapshot(ctx context.Context, at int64) (s history.Snapshot, err error) {
	defer d.engine.Annotate(&err, "read past")
	r := d.engine.Reader()
	if s.Clock, err = Number[int64](ctx, r, `SELECT coalesce((SELECT clock FROM snapshots WHERE at >= ? ORDER BY at LIMIT 1), 0)`, at); err != nil {
		return s, err
	}
	if s.Since, err = metaValue(ctx, r, metaReceipts); err != nil {
		return s, err
	}
	var body []byte
	err = EachRow(ctx, r, `SELECT at, body FROM snapshots WHERE at <= ? AND body IS NOT NULL ORDER BY at DESC LIMIT 1`, []any{at}, func(rows *sql.Rows) error {
		return rows.Scan(&s.At, &body)
	})
	if err == nil && body != nil {
		s.SnapshotBody, err = DecodeSnapshot(body)
	}
	return s, err
}

// DecodeSnapshot decodes what EncodeSnapshot has encoded.
func DecodeSnapshot(body []byte) (s history.SnapshotBody, err error) {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(body)))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		err = fmt.Errorf("decode snapshot: %w", err)
	}
	return s, err
}

// EncodeSnapshot encodes a snapshot as it is stored.
func EncodeSnapshot(s history.SnapshotBody) ([]byte, error) {
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

// TakeSnapshot keeps a snapshot of a checkpoint that was just saved.
func TakeSnapshot(t Tx, at int64, c *history.Checkpoint) error {
	if at == 0 {
		return nil
	}
	var last, size int64
	err := t.Get(`SELECT at, length(body) FROM snapshots WHERE body IS NOT NULL ORDER BY at DESC LIMIT 1`, nil, &last, &size)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var body any
	if pause := snapshotSpans()[0].body.Microseconds() * (1 + size/maxBody); at-last >= pause || at < last {
		s := history.SnapshotBody{Counts: c.Counts}
		if s.Workers, err = List[string](t.Context(), t, `SELECT body FROM workers ORDER BY name`); err != nil {
			return err
		}
		if body, err = EncodeSnapshot(s); err != nil {
			return err
		}
		if err := thinSnapshots(t, at); err != nil {
			return err
		}
	}
	return t.Exec(t.Dialect().addSnapshot, at, c.Clock, body)
}

// thinSnapshots keeps, of the snapshots of an age, the last of each span.
func thinSnapshots(t Tx, now int64) error {
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
	return t.Exec(`DELETE FROM snapshots WHERE at <= ?`, now-spans[len(spans)-1].age.Microseconds())
}

// stepTasks is how many tasks NearestReceipts reads at most to find one event.
const stepTasks = 10_000

// NearestReceipts returns the newest receipt before an instant, and the next after it, given those of tasks of which all was received
// on one side of it, 0 if there is none. Of the tasks that the instant divides, and of those that the next receipt divides, it reads
// the events: nothing else can be nearer.
func NearestReceipts(ctx context.Context, p history.PastReader, at, before, after int64) (int64, int64, error) {
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
	for _, instant := range []int64{at, at - 1} {
		if _, err := p.TasksAround(ctx, instant, stepTasks, note); err != nil {
			return 0, 0, err
		}
	}
	var err error
	if after != 0 {
		_, err = p.TasksAround(ctx, after-1, stepTasks, note)
	}
	return before, after, err
}
