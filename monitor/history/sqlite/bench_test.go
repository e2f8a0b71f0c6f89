package sqlite_test

import (
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// BenchmarkWrite saves new tasks, 1,000 in each transaction.
func BenchmarkWrite(b *testing.B) {
	batches := testBatches(b, max(b.N, 1000), 24, 1000)
	dir := b.TempDir()
	d, err := sqlite.Open(b.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	used := cpuTime(b)
	n, number := 0, uint64(0)
	for _, batch := range batches {
		batch.TrimJournal = number
		w, err := d.Write(b.Context(), batch)
		if err != nil {
			b.Fatal(err)
		}
		n, number = n+len(batch.Tasks), w.JournalEntry
	}
	b.StopTimer()
	b.ReportMetric((cpuTime(b)-used)*1e6/float64(n), "cpu-µs/task")
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
	defer func() { _ = db.Close() }()
	rows, err := db.Query(`SELECT name, sum(pgsize), sum(payload) FROM dbstat GROUP BY name ORDER BY 2 DESC`)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var size, payload int
		if err := rows.Scan(&name, &size, &payload); err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(w, "%-24s %7.1f %7.1f bytes/task\n", name, float64(size)/float64(n), float64(payload)/float64(n))
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkIndex indexes the texts of tasks.
func BenchmarkIndex(b *testing.B) {
	n := max(b.N, 1000)
	dir := b.TempDir()
	d, err := sqlite.Open(b.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	for _, batch := range testBatches(b, n, 24, 1000) {
		if _, err := d.Write(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	used := cpuTime(b)
	if err := d.Index(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric((cpuTime(b)-used)*1e6/float64(n), "cpu-µs/task")
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
	if testing.Verbose() {
		tell(b, os.Stdout, dir, n)
	}
}

// BenchmarkJournal saves events only, 10,000 in each transaction.
func BenchmarkJournal(b *testing.B) {
	batches := testBatches(b, 10_000/3, 24, 10_000)
	journal := batches[0].Journal
	d, err := sqlite.Open(b.Context(), sqlite.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	number := uint64(0)
	for n := 0; n < b.N; n += 10_000 {
		w, err := d.Write(b.Context(), history.Batch{Journal: journal, TrimJournal: max(number, 20) - 20})
		if err != nil {
			b.Fatal(err)
		}
		number = w.JournalEntry
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(len(journal))/10_000, "bytes/event")
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
}

// cpuTime is what this process has used so far, in seconds.
func cpuTime(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
