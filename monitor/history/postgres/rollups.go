package postgres

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/rollup"
)

// Rollups calls f with every rollup that r selects, oldest first.
func (d *DB) Rollups(ctx context.Context, r history.RollupRange, f func(history.Rollup) error) (err error) {
	defer annotate(&err, "read rollups")
	var m history.Rollup
	columns, into := `at, name, worker, queue`, []any{&m.At, &m.Name, &m.Worker, &m.Queue}
	if !r.OmitCounts {
		columns, into = columns+`, received, succeeded, failed, retried`, append(into, &m.Received, &m.Succeeded, &m.Failed, &m.Retried)
	}
	if r.Wait {
		columns, into = columns+`, wait`, append(into, &m.Wait)
	}
	if r.Run {
		columns, into = columns+`, run`, append(into, &m.Run)
	}
	where := []string{`span = ?`, `at >= ?`, `at < ?`}
	args := []any{tables.Minutes(r.Span), tables.StartMinute(r.From), tables.StartMinute(r.To)}
	for _, c := range []struct {
		column string
		texts  []string
	}{{`name`, r.Names}, {`worker`, r.Workers}, {`queue`, r.Queues}} {
		if len(c.texts) > 0 {
			where, args = append(where, c.column+` = ANY(?)`), append(args, append([]string{""}, c.texts...))
		}
	}
	group := ``
	if field, ok := summed(r); ok {
		columns = `at, ` + strings.Join(field[:], `, `) + `, sum(received)::bigint, sum(succeeded)::bigint, sum(failed)::bigint, sum(retried)::bigint`
		group = ` GROUP BY 1, 2, 3, 4`
	}
	return tables.EachRow(ctx, d.read, `SELECT `+columns+` FROM rollups WHERE `+strings.Join(where, ` AND `)+group+` ORDER BY 1, 2, 3, 4`, args,
		func(rows *sql.Rows) error {
			if err := rows.Scan(into...); err != nil {
				return err
			}
			return f(m)
		})
}

// summed returns the columns of name, worker and queue of rollups that the server adds up, which it does some ten times as fast as it
// sends them. It cannot merge histograms, and lists no places.
func summed(r history.RollupRange) (fields [3]string, ok bool) {
	if r.Wait || r.Run || r.Places || r.OmitCounts || r.By == history.ByAll {
		return fields, false
	}
	fields = [3]string{`''`, `''`, `''`}
	switch r.By {
	case history.ByName:
		fields[0] = `name`
	case history.ByWorker:
		fields[1] = `worker`
	case history.ByQueue:
		fields[2] = `queue`
	case history.ByAll, history.ByTime: // none of them
	}
	return fields, true
}

// rollupKey is that of a row of rollups.
type rollupKey struct {
	span, at            int64
	name, worker, queue string
}

// addRollups adds rollups to stored ones of each span.
func (t *tx) addRollups(cells []history.Rollup) error {
	if len(cells) == 0 {
		return nil
	}
	sums, keys := make(map[rollupKey]*history.Rollup), []rollupKey(nil)
	for _, m := range cells {
		for _, span := range history.RollupSpans() {
			length := tables.Minutes(span.Length)
			k := rollupKey{length, m.At - m.At%length, m.Name, m.Worker, m.Queue}
			sum := sums[k]
			if sum == nil {
				sum = new(history.Rollup)
				sums[k], keys = sum, append(keys, k)
			}
			if err := addRollup(sum, &m); err != nil {
				return err
			}
		}
	}
	var spans, ats, received, succeeded, failed, retried []int64
	var names, workers, queues []string
	for _, k := range keys {
		spans, ats, names, workers, queues = append(spans, k.span), append(ats, k.at), append(names, k.name), append(workers, k.worker), append(queues, k.queue)
		m := sums[k]
		received, succeeded, failed, retried = append(received, m.Received), append(succeeded, m.Succeeded), append(failed, m.Failed), append(retried, m.Retried)
	}
	err := t.Each(`SELECT r.span, r.at, r.name, r.worker, r.queue, r.wait, r.run FROM rollups r JOIN
		unnest($1::int[], $2::bigint[], $3::text[], $4::text[], $5::text[]) AS k (span, at, name, worker, queue) USING (span, at, name, worker, queue)`,
		[]any{spans, ats, names, workers, queues}, func(rows *sql.Rows) error {
			var k rollupKey
			var wait, run []byte
			if err := rows.Scan(&k.span, &k.at, &k.name, &k.worker, &k.queue, &wait, &run); err != nil {
				return err
			}
			m := sums[k]
			var err, err2 error
			m.Wait, err = mergeHistograms(wait, m.Wait)
			m.Run, err2 = mergeHistograms(run, m.Run)
			return errors.Join(err, err2)
		})
	if err != nil {
		return err
	}
	var waits, runs [][]byte
	for _, k := range keys {
		waits, runs = append(waits, sums[k].Wait), append(runs, sums[k].Run)
	}
	return t.Exec(`INSERT INTO rollups (span, at, name, worker, queue, received, succeeded, failed, retried, wait, run)
		SELECT * FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
			$10::bytea[], $11::bytea[])
		ON CONFLICT (span, at, name, worker, queue) DO UPDATE SET received = rollups.received + excluded.received,
			succeeded = rollups.succeeded + excluded.succeeded, failed = rollups.failed + excluded.failed,
			retried = rollups.retried + excluded.retried, wait = excluded.wait, run = excluded.run`,
		spans, ats, names, workers, queues, received, succeeded, failed, retried, waits, runs)
}

// addRollup adds a rollup to a sum.
func addRollup(sum, m *history.Rollup) (err error) {
	sum.Received += m.Received
	sum.Succeeded += m.Succeeded
	sum.Failed += m.Failed
	sum.Retried += m.Retried
	for _, h := range [][]byte{m.Wait, m.Run} {
		if _, err := rollup.ParseHistogram(h); len(h) > 0 && err != nil {
			return err
		}
	}
	if sum.Wait, err = mergeHistograms(sum.Wait, m.Wait); err != nil {
		return err
	}
	sum.Run, err = mergeHistograms(sum.Run, m.Run)
	return err
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

// expireRollups removes rollups that are too old.
func (d *DB) expireRollups(ctx context.Context) error {
	today, err := d.ReferenceTime(ctx)
	if err != nil {
		return err
	}
	return d.update(ctx, func(t *tx) error {
		for _, span := range history.RollupSpans() {
			end := tables.StartMinute(today.Add(-span.Retention))
			if err := t.Exec(`DELETE FROM rollups WHERE span = $1 AND at < $2`, tables.Minutes(span.Length), end); err != nil {
				return err
			}
		}
		return nil
	})
}
