package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/rollup"
)

// Rollups calls f with every rollup that r selects, oldest first.
func (d *DB) Rollups(ctx context.Context, r history.RollupRange, f func(history.Rollup) error) (err error) {
	defer annotate(&err, "read rollups")
	var row rollupRow
	columns, into := row.columns(r)
	query, args := d.rollupsQuery(r, columns)
	return tables.EachRow(ctx, d.read, query, args, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		m := row.Rollup
		m.Name, m.Worker, m.Queue = d.symbols.text(row.name), d.symbols.text(row.worker), d.symbols.text(row.queue)
		m.Workers, m.Queues = d.symbols.list(row.workers), d.symbols.list(row.queues)
		return f(m)
	})
}

// rollupRow is a row of rollups or of their sums.
type rollupRow struct {
	history.Rollup

	name, worker, queue int64
	workers, queues     sql.RawBytes
}

// columns returns the columns to read for r, and where to scan them. Fewer are read much faster.
func (row *rollupRow) columns(r history.RollupRange) (names string, into []any) {
	names, into = `at`, []any{&row.At}
	add := func(name string, to any) { names, into = names+`, `+name, append(into, to) }
	switch {
	case !summed(r):
		add(`name`, &row.name)
		add(`worker`, &row.worker)
		add(`queue`, &row.queue)
	case r.By == history.ByName:
		add(`symbol`, &row.name)
	case r.By == history.ByWorker:
		add(`symbol`, &row.worker)
	case r.By == history.ByQueue:
		add(`symbol`, &row.queue)
	}
	if !r.OmitCounts {
		add(`received`, &row.Received)
		add(`succeeded`, &row.Succeeded)
		add(`failed`, &row.Failed)
		add(`retried`, &row.Retried)
	}
	if r.Wait {
		add(`wait`, &row.Wait)
	}
	if r.Run {
		add(`run`, &row.Run)
	}
	if r.Places && summed(r) {
		add(`workers`, &row.workers)
		add(`queues`, &row.queues)
	}
	return names, into
}

// maxSought is how many spans are sought one by one, each for the names wanted, rather than read as a range of all names.
const maxSought = 1_000

// rollupsQuery returns the statement that reads columns of what r selects, from sums if they tell apart what r does.
func (d *DB) rollupsQuery(r history.RollupRange, columns string) (query string, args []any) {
	type filter struct {
		column string
		texts  []string
	}
	table, key := `rollups`, `name, worker, queue`
	filters := []filter{{`name`, r.Names}, {`worker`, r.Workers}, {`queue`, r.Queues}}
	where, span := []string{`span = ?`}, tables.Minutes(r.Span)
	if summed(r) {
		table, key = `rollup_sums`, `symbol`
		filters = []filter{{`symbol`, slices.Concat(r.Names, r.Workers, r.Queues)}} // but one is empty
		where, args = append([]string{`grouping = ?`}, where...), append(args, r.By)
	}
	first, end := tables.StartMinute(r.From), tables.StartMinute(r.To)
	start := first + (span-first%span)%span
	if len(filters[0].texts) > 0 && start < end && (end-start)/span <= maxSought {
		where = append(where, `at IN (WITH RECURSIVE starts(at) AS (VALUES (?) UNION ALL SELECT at + ? FROM starts WHERE at + ? < ?)
			SELECT at FROM starts)`)
		args = append(args, span, start, span, span, end)
	} else {
		where = append(where, `at >= ? AND at < ?`)
		args = append(args, span, first, end)
	}
	for _, c := range filters {
		if len(c.texts) == 0 {
			continue
		}
		where = append(where, c.column+` IN (0`+strings.Repeat(`, ?`, len(c.texts))+`)`)
		for _, text := range c.texts {
			n, _ := d.symbols.symbol(text) // 0, which stands for none, if it is unknown
			args = append(args, n)
		}
	}
	return `SELECT ` + columns + ` FROM ` + table + ` WHERE ` + strings.Join(where, ` AND `) + ` ORDER BY at, ` + key, args
}

// summed reports whether r selects by nothing but what it tells apart.
func summed(r history.RollupRange) bool {
	return r.By != history.ByAll && (len(r.Names) == 0 || r.By == history.ByName) &&
		(len(r.Workers) == 0 || r.By == history.ByWorker) && (len(r.Queues) == 0 || r.By == history.ByQueue)
}

// addRollups adds rollups to stored ones of each span, and to their sums.
func (t *tx) addRollups(cells []history.Rollup) error {
	s := sums{}
	for _, m := range cells {
		var key [3]int64
		for i, name := range []string{m.Name, m.Worker, m.Queue} {
			if name == "" {
				continue
			}
			var err error
			if key[i], err = t.symbol(name); err != nil {
				return err
			}
		}
		for _, span := range history.RollupSpans() {
			length := tables.Minutes(span.Length)
			if err := t.addRollup(length, key, m); err != nil {
				return err
			}
			if err := s.add(length, m.At-m.At%length, key, &m); err != nil {
				return err
			}
		}
	}
	return t.addSums(s)
}

// addRollup adds a rollup to the stored one of a span.
func (t *tx) addRollup(span int64, key [3]int64, m history.Rollup) error {
	at := m.At - m.At%span
	var wait, run []byte
	err := t.get(`SELECT wait, run FROM rollups WHERE span = ? AND at = ? AND name = ? AND worker = ? AND queue = ?`,
		[]any{span, at, key[0], key[1], key[2]}, &wait, &run)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if m.Wait, err = mergeHistograms(wait, m.Wait); err != nil {
		return err
	}
	if m.Run, err = mergeHistograms(run, m.Run); err != nil {
		return err
	}
	return t.exec(`INSERT INTO rollups (span, at, name, worker, queue, received, succeeded, failed, retried, wait, run)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
		received = received + excluded.received, succeeded = succeeded + excluded.succeeded,
		failed = failed + excluded.failed, retried = retried + excluded.retried, wait = excluded.wait, run = excluded.run`,
		span, at, key[0], key[1], key[2], m.Received, m.Succeeded, m.Failed, m.Retried, m.Wait, m.Run)
}

// mergeHistograms adds two encoded histograms. It drops a stored one that is damaged, so that new ones can be written.
func mergeHistograms(stored, added []byte) ([]byte, error) {
	if len(stored) == 0 || len(added) == 0 {
		return append(stored, added...), nil
	}
	if _, err := rollup.ParseHistogram(stored); err != nil {
		return added, nil //nolint:nilerr // see above
	}
	return rollup.MergeEncoded(stored, added)
}

const (
	expireInterval = time.Minute // between searches for rollups that are too old
	maxExpired     = 100         // minutes, or spans, removed at once
)

// expireLoop removes rollups that are too old until ctx ends.
func (d *DB) expireLoop(ctx context.Context) error {
	ticker := time.NewTicker(expireInterval)
	defer ticker.Stop()
	for {
		if err := d.expireRollups(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("old rollups not removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// expireRollups removes the oldest rollups in short transactions.
func (d *DB) expireRollups(ctx context.Context) error {
	today, err := d.ReferenceTime(ctx)
	if err != nil {
		return err
	}
	for _, span := range history.RollupSpans() {
		length, end := tables.Minutes(span.Length), tables.StartMinute(today.Add(-span.Retention))
		for range maxExpired {
			oldest, err := tables.List[int64](ctx, d.read, `SELECT at FROM rollups WHERE span = ? AND at < ? ORDER BY at LIMIT 1`, length, end)
			if err != nil {
				return err
			}
			if len(oldest) == 0 {
				break
			}
			err = d.update(ctx, func(t *tx) error {
				return errors.Join(t.exec(`DELETE FROM rollups WHERE span = ? AND at = ?`, length, oldest[0]), t.removeSums(length, oldest[0]))
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
