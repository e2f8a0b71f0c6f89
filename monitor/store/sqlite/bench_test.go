package sqlite_test

import (
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/monitor/store/sqlite"
	"github.com/umbelhq/umbel/state"
)

const received = 1_767_603_600_000_000 // when the events of benchmarks arrive, µs

// lives returns what a monitor writes of n typical tasks, from first to last event, each batch with chunk
// tasks and the journal of their events.
func lives(tb testing.TB, n, chunk int) []store.Batch {
	tb.Helper()
	c := state.New(state.Options{MaxTasks: n, Track: true})
	var d celery.Decoder
	var batches []store.Batch
	var journal []byte
	flush := func() {
		b := store.Batch{Journal: journal}
		for _, u := range c.TakeUnsaved(c.Unsaved()) {
			b.Tasks = append(b.Tasks, store.Task{View: u.View, Events: u.Events, Stored: u.Stored})
		}
		if err := c.Saved(true, nil); err != nil {
			tb.Fatal(err)
		}
		batches, journal = append(batches, b), nil
	}
	for _, body := range simulate.Typical(3*n, 24) {
		d.Decode(body, received, func(e *state.Event) {
			if change := c.Apply(e); change.New {
				journal = state.AppendEvent(journal, e, change.Clock)
			}
		})
		if c.Unsaved() >= chunk {
			flush()
		}
	}
	flush()
	return batches
}

// BenchmarkWrite saves new tasks, 1,000 in each transaction.
func BenchmarkWrite(b *testing.B) {
	batches := lives(b, max(b.N, 1000), 1000)
	dir := b.TempDir()
	d, err := sqlite.Open(b.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	n, number := 0, uint64(0)
	for _, batch := range batches {
		batch.Forget = number
		w, err := d.Write(b.Context(), batch)
		if err != nil {
			b.Fatal(err)
		}
		n, number = n+len(batch.Tasks), w.Journal
	}
	b.StopTimer()
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tasks/s")
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "history.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/float64(n), "bytes/task")
	if testing.Verbose() {
		tell(b, os.Stdout, dir, n)
	}
}

// tell writes how many bytes of each table and index there are for a task.
func tell(b *testing.B, w io.Writer, dir string, n int) {
	b.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "history.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT name, sum(pgsize), sum(payload) FROM dbstat GROUP BY name ORDER BY 2 DESC`)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var size, payload int
		if err := rows.Scan(&name, &size, &payload); err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(w, "%-22s %7.1f %7.1f bytes/task\n", name, float64(size)/float64(n), float64(payload)/float64(n))
	}
}

// BenchmarkJournal saves events only, 10,000 in each transaction.
func BenchmarkJournal(b *testing.B) {
	batches := lives(b, 10_000/3, 10_000)
	journal := batches[0].Journal
	d, err := sqlite.Open(b.Context(), sqlite.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	number := uint64(0)
	for n := 0; n < b.N; n += 10_000 {
		w, err := d.Write(b.Context(), store.Batch{Journal: journal, Forget: max(number, 20) - 20})
		if err != nil {
			b.Fatal(err)
		}
		number = w.Journal
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(len(journal))/10_000, "bytes/event")
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
}
