package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/monitor/workers"
	"github.com/umbelhq/umbel/state/query"
)

// total is what a reader adds up of one group at one time.
type total struct {
	Received, Succeeded, Failed, Retried int64
	Wait, Run                            []byte
	Workers, Queues                      []string
}

// totals adds up rollups by time and what they are told apart by, as readers do.
func totals(t *rapid.T, s history.RollupReader, r history.RollupRange, by history.RollupGrouping) map[[2]any]total {
	all := map[[2]any]total{}
	err := s.Rollups(context.Background(), r, func(m history.Rollup) error {
		k := [2]any{m.At, [...]string{history.ByTime: "", history.ByName: m.Name, history.ByWorker: m.Worker, history.ByQueue: m.Queue}[by]}
		n := all[k]
		n.Received += m.Received
		n.Succeeded += m.Succeeded
		n.Failed += m.Failed
		n.Retried += m.Retried
		if by == history.ByName {
			n.Workers = slices.Concat(n.Workers, m.Workers, []string{m.Worker})
			n.Queues = slices.Concat(n.Queues, m.Queues, []string{m.Queue})
		}
		wait, err := rollup.MergeEncoded(n.Wait, m.Wait)
		if err != nil {
			return err
		}
		n.Wait = wait
		n.Run, err = rollup.MergeEncoded(n.Run, m.Run)
		all[k] = n
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for k, n := range all {
		n.Workers, n.Queues = known(n.Workers), known(n.Queues)
		all[k] = n
	}
	return all
}

// known returns the distinct names in a list, in order.
func known(names []string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(s string) bool { return s == "" })
}

// drawCells draws rollups of three hours from a minute on.
func drawCells(t *rapid.T, first int64) []history.Rollup {
	histogram := rapid.Custom(func(t *rapid.T) []byte {
		var h rollup.Histogram
		for _, v := range rapid.SliceOfN(rapid.Int64Range(0, 1_000_000), 0, 3).Draw(t, "durations") {
			h.Add(v)
		}
		return h.Encode()
	})
	few := rapid.Int64Range(0, 2)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) history.Rollup {
		at := first + rapid.Int64Range(0, 180).Draw(t, "minute")
		if rapid.IntRange(0, 4).Draw(t, "watched") == 0 {
			return history.Rollup{At: at}
		}
		m := history.Rollup{
			At: at, Name: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "name"),
			Worker: rapid.SampledFrom([]string{"", "v", "w", rollup.Other}).Draw(t, "worker"), Queue: rapid.SampledFrom([]string{"", "q", "r"}).Draw(t, "queue"),
			Received: few.Draw(t, "received"), Succeeded: few.Draw(t, "succeeded"), Failed: few.Draw(t, "failed"), Retried: few.Draw(t, "retried"),
			Wait: histogram.Draw(t, "wait"), Run: histogram.Draw(t, "run"),
		}
		if m.Received+m.Succeeded+m.Failed+m.Retried == 0 && len(m.Wait)+len(m.Run) == 0 {
			m.Received = 1 // there is no rollup of nothing
		}
		return m
	}), 0, 12).Draw(t, "cells")
}

// Who tells rollups apart by one field reads sums of them that are stored: the same as who adds them up.
func TestSumsAreThoseOfAllRollups(t *testing.T) {
	t.Parallel()
	d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, d)
	first := int64(29_920_320)
	rapid.Check(t, func(t *rapid.T) {
		first += 10 * 24 * 60 // where nothing is yet
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			if _, err := d.Write(context.Background(), history.Batch{Checkpoint: &history.Checkpoint{Rollups: drawCells(t, first)}}); err != nil {
				t.Fatal(err)
			}
		}
		from := time.Unix(60*(first+rapid.Int64Range(-100, 100).Draw(t, "from")), 0)
		for _, s := range history.RollupSpans() {
			for by := history.ByTime; by <= history.ByQueue; by++ {
				r := history.RollupRange{From: from, To: from.Add(2 * time.Hour), Span: s.Length, Wait: true, Run: true, Places: true}
				if rapid.Bool().Draw(t, "selects") {
					some := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "v", "q", "none"}), 1, 3).Draw(t, "some")
					*[...]*[]string{history.ByTime: &r.Names, history.ByName: &r.Names, history.ByWorker: &r.Workers, history.ByQueue: &r.Queues}[by] = some
				}
				want := totals(t, d, r, by)
				r.By = by
				if diff := cmp.Diff(want, totals(t, d, r, by)); diff != "" {
					t.Fatalf("%v of %+v (-added up +read):\n%s", by, r, diff)
				}
			}
		}
	})
}

// apart is a history without sums: readers add up all rollups themselves.
type apart struct{ history.RollupReader }

func (p apart) Rollups(ctx context.Context, r history.RollupRange, f func(history.Rollup) error) error {
	r.By = history.ByAll
	return p.RollupReader.Rollups(ctx, r, f)
}

// Charts, task types and workers are the same whether they are made of sums or of all rollups.
func TestReadersOfSumsFindWhatReadersOfAllFind(t *testing.T) {
	t.Parallel()
	d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, d)
	first := int64(29_920_320)
	rapid.Check(t, func(t *rapid.T) {
		first += 10 * 24 * 60
		for range rapid.IntRange(1, 3).Draw(t, "batches") {
			if _, err := d.Write(context.Background(), history.Batch{Checkpoint: &history.Checkpoint{Rollups: drawCells(t, first)}}); err != nil {
				t.Fatal(err)
			}
		}
		now := time.Unix(60*(first+rapid.Int64Range(0, 400).Draw(t, "now")), 0)
		q, err := query.Parse(rapid.SampledFrom([]string{
			"", "name:a", "-name:a", "worker:v,w", "queue:q", "name:a queue:q", "state:failure", "state:success name:b", "name:a OR worker:v", "-queue:r worker:w",
		}).Draw(t, "query"))
		if err != nil {
			t.Fatal(err)
		}
		r := rollup.Request{
			Query: q, From: now.Add(-rapid.SampledFrom([]time.Duration{time.Hour, 6 * time.Hour, 7 * 24 * time.Hour}).Draw(t, "length")), To: now, Now: now,
			GroupBy: rapid.SampledFrom([]rollup.Group{rollup.ByState, rollup.ByName, rollup.ByWorker, rollup.ByQueue}).Draw(t, "group"),
			RankBy:  rapid.SampledFrom([]rollup.Measure{rollup.Count, rollup.Wait, rollup.Run}).Draw(t, "rank"), OmitHistograms: rapid.Bool().Draw(t, "counts"),
		}
		length := rapid.SampledFrom(tasktype.Ranges()).Draw(t, "range")
		var names []string
		if rapid.Bool().Draw(t, "named") {
			names = []string{"a"}
		}
		read := func(s history.RollupReader) []any {
			ctx := context.Background()
			series, err := rollup.Read(ctx, d, s, r)
			table, err2 := tasktype.Read(ctx, s, tasktype.Span{From: now.Add(-length), To: now, Now: now}, names...)
			usual, err3 := tasktype.ReadUsual(ctx, s, now, names...)
			counts, err4 := workers.ReadCounts(ctx, s, now)
			if err := errors.Join(err, err2, err3, err4); err != nil {
				t.Fatal(err)
			}
			return []any{series, table, usual, counts}
		}
		same := cmp.Comparer(func(a, b rollup.Histogram) bool { return bytes.Equal(a.Encode(), b.Encode()) })
		if diff := cmp.Diff(read(apart{d}), read(d), same); diff != "" {
			t.Fatalf("%+v (-of all +of sums):\n%s", r, diff)
		}
	})
}
