package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
)

// sumKey is that of a row of rollup_sums.
type sumKey struct {
	by       history.RollupGrouping
	span, at int64
	symbol   int64
}

func (k sumKey) compare(o sumKey) int {
	return cmp.Or(cmp.Compare(k.by, o.by), cmp.Compare(k.span, o.span), cmp.Compare(k.at, o.at), cmp.Compare(k.symbol, o.symbol))
}

// sum is what is added to a row of rollup_sums.
type sum struct {
	received, succeeded, failed, retried int64
	wait, run                            rollup.Histogram
	workers, queues                      []int64
}

// sums are rollups that are added up by each grouping until they are written.
type sums map[sumKey]*sum

// add adds a rollup of a span. Its key has the symbols of name, worker and queue.
func (s sums) add(span, at int64, key [3]int64, m *history.Rollup) error {
	for _, k := range [...]sumKey{
		{history.ByTime, span, at, 0},
		{history.ByName, span, at, key[0]},
		{history.ByWorker, span, at, key[1]},
		{history.ByQueue, span, at, key[2]},
	} {
		n := s[k]
		if n == nil {
			n = &sum{}
			s[k] = n
		}
		n.received += m.Received
		n.succeeded += m.Succeeded
		n.failed += m.Failed
		n.retried += m.Retried
		if err := errors.Join(n.wait.MergeSaved(m.Wait), n.run.MergeSaved(m.Run)); err != nil {
			return err
		}
		if k.by == history.ByName {
			n.workers, n.queues = withSymbol(n.workers, key[1]), withSymbol(n.queues, key[2])
		}
	}
	return nil
}

// withSymbol adds a known symbol to a list in order.
func withSymbol(list []int64, symbol int64) []int64 {
	i, found := slices.BinarySearch(list, symbol)
	if found || symbol == 0 {
		return list
	}
	return slices.Insert(list, i, symbol)
}

// addSums adds sums to the stored ones.
func (t *tx) addSums(s sums) error {
	for _, k := range slices.SortedFunc(maps.Keys(s), sumKey.compare) {
		n := s[k]
		var wait, run, workers, queues []byte
		err := t.get(`SELECT wait, run, workers, queues FROM rollup_sums WHERE grouping = ? AND span = ? AND at = ? AND symbol = ?`,
			[]any{k.by, k.span, k.at, k.symbol}, &wait, &run, &workers, &queues)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if wait, err = mergeHistograms(wait, n.wait.Encode()); err != nil {
			return err
		}
		if run, err = mergeHistograms(run, n.run.Encode()); err != nil {
			return err
		}
		err = t.exec(`INSERT INTO rollup_sums (grouping, span, at, symbol, received, succeeded, failed, retried, wait, run, workers, queues)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
			received = received + excluded.received, succeeded = succeeded + excluded.succeeded,
			failed = failed + excluded.failed, retried = retried + excluded.retried,
			wait = excluded.wait, run = excluded.run, workers = excluded.workers, queues = excluded.queues`,
			k.by, k.span, k.at, k.symbol, n.received, n.succeeded, n.failed, n.retried, wait, run,
			mergeSymbols(workers, n.workers), mergeSymbols(queues, n.queues))
		if err != nil {
			return err
		}
	}
	return nil
}

// removeSums removes the sums of a span of time.
func (t *tx) removeSums(span, at int64) error {
	for _, by := range [...]history.RollupGrouping{history.ByTime, history.ByName, history.ByWorker, history.ByQueue} {
		if err := t.exec(`DELETE FROM rollup_sums WHERE grouping = ? AND span = ? AND at = ?`, by, span, at); err != nil {
			return err
		}
	}
	return nil
}

// mergeSymbols adds symbols to an encoded list.
func mergeSymbols(encoded []byte, added []int64) []byte {
	if len(added) == 0 {
		return encoded
	}
	list := symbolList(encoded)
	known := len(list)
	for _, symbol := range added {
		list = withSymbol(list, symbol)
	}
	if len(list) == known {
		return encoded
	}
	b, last := make([]byte, 0, 2*len(list)), int64(0)
	for _, symbol := range list {
		b = binary.AppendUvarint(b, uint64(symbol-last))
		last = symbol
	}
	return b
}

// list returns the texts of an encoded list.
func (s *symbols) list(encoded []byte) []string {
	var texts []string
	for _, n := range symbolList(encoded) {
		texts = append(texts, s.text(n))
	}
	return texts
}

// symbolList decodes what mergeSymbols encoded, up to what is damaged.
func symbolList(b []byte) []int64 {
	var list []int64
	for last := int64(0); len(b) > 0; {
		distance, n := binary.Uvarint(b)
		if n <= 0 {
			break
		}
		last += int64(distance)
		list, b = append(list, last), b[n:]
	}
	return list
}

// addRow adds a row of rollups, with span, time and key first. Damaged histograms count nothing.
func (s sums) addRow(row []any) {
	n := func(i int) int64 { v, _ := row[i].(int64); return v }
	blob := func(i int) []byte { v, _ := row[i].([]byte); return intact(v) }
	m := history.Rollup{Received: n(5), Succeeded: n(6), Failed: n(7), Retried: n(8), Wait: blob(9), Run: blob(10)}
	_ = s.add(n(0), n(1), [3]int64{n(2), n(3), n(4)}, &m) // cannot fail: the histograms are intact
}

// intact returns a histogram, nil if it is damaged.
func intact(encoded []byte) []byte {
	if _, err := rollup.ParseHistogram(encoded); err != nil {
		return nil
	}
	return encoded
}

// fillSums adds up all rollups of a history that has no sums yet.
func fillSums(ctx context.Context, begun *sql.Tx) error {
	t := &tx{Tx: begun, ctx: ctx, stmts: map[string]*sql.Stmt{}}
	span, at := int64(0), int64(0)
	for {
		err := t.get(`SELECT span, at FROM rollups WHERE (span, at) > (?, ?) ORDER BY span, at LIMIT 1`, []any{span, at}, &span, &at)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		s := sums{}
		err = t.each(`SELECT name, worker, queue, received, succeeded, failed, retried, wait, run FROM rollups WHERE span = ? AND at = ?`,
			[]any{span, at}, func(rows *sql.Rows) error {
				var key [3]int64
				var m history.Rollup
				if err := rows.Scan(&key[0], &key[1], &key[2], &m.Received, &m.Succeeded, &m.Failed, &m.Retried, &m.Wait, &m.Run); err != nil {
					return err
				}
				m.Wait, m.Run = intact(m.Wait), intact(m.Run)
				return s.add(span, at, key, &m)
			})
		if err == nil {
			err = t.addSums(s)
		}
		if err != nil {
			return err
		}
	}
}
