package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/longhistory"
	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
)

// BenchmarkWrite saves tasks, 1,000 in each transaction, with the events that came meanwhile, in turns in SQLite and in PostgreSQL.
// All are new, or have begun before: those are saved as they begin, and again once they have ended.
func BenchmarkWrite(b *testing.B) {
	for name, begun := range map[string]bool{"new": false, "begun": true} {
		b.Run(name, func(b *testing.B) {
			file, err := sqlite.Open(b.Context(), sqlite.Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			server := open(b, testpostgres.Schema(b))
			stores := []history.Store{file, server}
			took := make([]time.Duration, len(stores))
			n := 0
			for _, batch := range batches(b.N, begun) {
				n += len(batch.Tasks)
				for i, s := range stores {
					at := time.Now()
					if _, err := s.Write(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
					took[i] += time.Since(at)
				}
			}
			for i, unit := range []string{"sqlite-tasks/s", "postgres-tasks/s"} {
				b.ReportMetric(float64(n)/took[i].Seconds(), unit)
			}
			b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "of-sqlite")
			for _, s := range stores {
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// batches are n batches of 1,000 tasks; if begun, as many of tasks that begin, each before the one of their ends.
func batches(n int, begun bool) []history.Batch {
	const size = 1_000
	tasks := longhistory.Tasks(n * size)
	cluster := state.New(state.Options{Track: true, MaxTasks: 4 * size})
	var list []history.Batch
	save := func(journal []byte) {
		batch := history.Batch{Journal: journal}
		for _, u := range cluster.TakeUnsaved(size) {
			batch.Tasks = append(batch.Tasks, history.Task{
				View: u.View, Events: slices.Clone(u.Events), Stored: u.Stored, FirstReceipt: u.FirstReceipt, ReceivedAt: u.ReceivedAt,
			})
		}
		_ = cluster.Saved(true, nil)
		list = append(list, batch)
	}
	for i := range n {
		ends := [][]*state.Event{nil, nil}
		for j := range size {
			events := tasks.Events(i*size + j)
			for k, e := range events {
				last := 0
				if k == len(events)-1 {
					last = 1
				}
				ends[last] = append(ends[last], e)
			}
		}
		var journal []byte
		for last, events := range ends {
			for _, e := range events {
				if change := cluster.Apply(e); change.New {
					journal = state.AppendEvent(journal, e, change.Clock)
				}
			}
			if last == 1 || begun {
				save(journal)
				journal = nil
			}
		}
	}
	return list
}
