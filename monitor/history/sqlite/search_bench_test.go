package sqlite_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/longhistory"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const million = 1_000_000

// benchTasks are those of benchmarks, and benchNow is after the last of them.
const benchTasks = longhistory.Tasks(million)

var benchNow = longhistory.Now()

// benchHistory opens a history of a million tasks with typical text, all of it indexed. It is kept in the directory
// that UMBEL_BENCH_HISTORY names, if it is set, for the next run.
func benchHistory(b *testing.B) (*sqlite.DB, string) {
	b.Helper()
	dir := cmp.Or(os.Getenv("UMBEL_BENCH_HISTORY"), b.TempDir())
	begin := time.Now()
	if err := longhistory.Build(b.Context(), dir, benchTasks, func(string, int) {}); err != nil {
		b.Fatal(err)
	}
	b.Logf("wrote and indexed %d tasks in %v, or there they were", million, time.Since(begin))
	return openBench(b, dir), dir
}

func openBench(b *testing.B, dir string) *sqlite.DB {
	b.Helper()
	d, err := sqlite.Open(b.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	return d
}

func parse(b *testing.B, q string) query.Query {
	b.Helper()
	p, err := query.Parse(q)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// latency times f and reports the median and the 95th percentile.
func latency(b *testing.B, f func(i int, timed func(func()))) {
	b.Helper()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		f(i, func(g func()) {
			begin := time.Now()
			g()
			took = append(took, time.Since(begin))
		})
	}
	slices.Sort(took)
	ms := func(p int) float64 { return float64(took[(len(took)-1)*p/100].Microseconds()) / 1000 }
	b.ReportMetric(ms(50), "p50-ms")
	b.ReportMetric(ms(95), "p95-ms")
	b.ReportMetric(0, "ns/op")
}

// readAll reads the history once, so that the system has it in memory.
func readAll(b *testing.B, dir string) {
	b.Helper()
	f, err := os.Open(filepath.Join(dir, "history.db"))
	if err != nil {
		b.Fatal(err)
	}
	_, err = io.Copy(io.Discard, f)
	if err := errors.Join(err, f.Close()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSearch reads pages of 50 from a million tasks.
func BenchmarkSearch(b *testing.B) {
	d, dir := benchHistory(b)
	middle := &state.Position{}
	page, err := d.Tasks(b.Context(), history.TaskRequest{Query: parse(b, "id:"+benchTasks.ID(million/2)), Limit: 1, Now: benchNow})
	if err != nil || len(page.Tasks) != 1 {
		b.Fatal(err, len(page.Tasks))
	}
	middle.Stamp, middle.ID = page.Tasks[0].Stamp, page.Tasks[0].ID
	list := func(d *sqlite.DB, r history.TaskRequest, want int) {
		b.Helper()
		r.Limit, r.Now = 50, benchNow
		page, err := d.Tasks(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		if len(page.Tasks) < want && page.Searched == 0 {
			b.Fatalf("%q: %d tasks, want %d", r.Query, len(page.Tasks), want)
		}
	}
	ask := func(b *testing.B, c longhistory.Query, i int) history.TaskRequest {
		b.Helper()
		r := history.TaskRequest{Query: parse(b, c.Query(i)), Sort: c.Sort}
		if c.Middle {
			r.From = middle
		}
		return r
	}
	readAll(b, dir)
	for _, c := range benchTasks.Queries() {
		b.Run(c.Name+"/warm", func(b *testing.B) {
			latency(b, func(i int, timed func(func())) {
				r := ask(b, c, i)
				timed(func() { list(d, r, c.Want) })
			})
		})
		b.Run(c.Name+"/count", func(b *testing.B) {
			latency(b, func(i int, timed func(func())) {
				r := ask(b, c, i)
				timed(func() {
					if _, err := d.Count(b.Context(), r.Query, benchNow, 10_000); err != nil {
						b.Fatal(err)
					}
				})
			})
		})
	}
	task := func(d *sqlite.DB, i int) {
		var r state.Reader
		id := benchTasks.ID(i * 7919 % million)
		events, err := d.Task(context.Background(), id)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := r.TaskEvents(id, events); err != nil {
			b.Fatal(err)
		}
		if _, err := d.Children(context.Background(), id, 1000); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("task/warm", func(b *testing.B) {
		latency(b, func(i int, timed func(func())) { timed(func() { task(d, i) }) })
	})
	for _, c := range benchTasks.Queries() {
		b.Run(c.Name+"/cold", func(b *testing.B) {
			latency(b, func(i int, timed func(func())) {
				d, r := cold(b, dir), ask(b, c, i)
				timed(func() { list(d, r, c.Want) })
				_ = d.Close()
			})
		})
	}
	b.Run("task/cold", func(b *testing.B) {
		latency(b, func(i int, timed func(func())) {
			d := cold(b, dir)
			timed(func() { task(d, i) })
			_ = d.Close()
		})
	})
}
