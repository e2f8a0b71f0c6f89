package sqlite_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const (
	million    = 1_000_000
	benchStart = 1_767_603_600_000_000 // when the first task is sent, µs
	benchGap   = 500_000               // until the next one
)

// benchNow is after the last task.
var benchNow = time.UnixMicro(benchStart + (million+1000)*benchGap)

// benchHistory opens a history of a million tasks with typical text, all of it indexed. It is kept in the directory
// that UMBEL_BENCH_HISTORY names, if it is set, for the next run.
func benchHistory(b *testing.B) (*sqlite.DB, string) {
	b.Helper()
	dir := cmp.Or(os.Getenv("UMBEL_BENCH_HISTORY"), b.TempDir())
	_, err := os.Stat(filepath.Join(dir, "complete"))
	d := openBench(b, dir)
	if err == nil {
		return d, dir
	}
	begin := time.Now()
	writeBench(b, d)
	b.Logf("wrote %d tasks in %v", million, time.Since(begin))
	begin = time.Now()
	if err := d.Index(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Logf("indexed them in %v", time.Since(begin))
	if err := os.WriteFile(filepath.Join(dir, "complete"), nil, 0o600); err != nil {
		b.Fatal(err)
	}
	return d, dir
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

// writeBench writes tasks of 40 names on 16 workers: 1 in 50 has failed, 1 in 200 was retried, 1 in 5 has a parent, and 1 in
// 1,000 takes a day.
func writeBench(b *testing.B, d *sqlite.DB) {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	c := state.New(state.Options{Track: true, MaxTasks: 20_000})
	var late []*state.Event
	for i := range million {
		for _, e := range benchTask(rng, i) {
			e.ReceivedMicros = e.Micros + 1_000
			if len(late) < 1000 && i%1000 == 7 && e.Kind == state.TaskSucceeded {
				late = append(late, e)
				continue
			}
			c.Apply(e)
		}
		if len(late) > 200 {
			e := late[0]
			late = late[1:]
			e.Micros, e.Clock, e.ReceivedMicros = benchMicros(i), 0, benchMicros(i)
			c.Apply(e)
		}
		if i%1000 != 999 {
			continue
		}
		batch := history.Batch{At: benchMicros(i + 1), Checkpoint: &history.Checkpoint{Clock: c.Clock(), Counts: c.Counts(), Workers: map[string][]byte{}}}
		if err := c.SaveWorkers(nil, func(name string, saved []byte) { batch.Checkpoint.Workers[name] = saved }); err != nil {
			b.Fatal(err)
		}
		for _, u := range c.TakeUnsaved(c.Unsaved()) {
			batch.Tasks = append(batch.Tasks, history.Task(u))
		}
		w, err := d.Write(b.Context(), batch)
		if err != nil || len(w.Existing) > 0 {
			b.Fatal(err, len(w.Existing))
		}
		if err := c.Saved(true, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func benchMicros(i int) int64 { return benchStart + int64(i)*benchGap }

// benchID is the id of task i.
func benchID(i int) string {
	var b [16]byte
	rng := rand.New(rand.NewPCG(uint64(i), 3))
	binary.LittleEndian.PutUint64(b[:], rng.Uint64())
	binary.LittleEndian.PutUint64(b[8:], rng.Uint64())
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// benchOrder is a number in the arguments of task i alone.
func benchOrder(i int) string { return fmt.Sprintf("%08x", uint32(i)*2654435761) }

func benchTask(rng *rand.Rand, i int) []*state.Event {
	n := rng.IntN(40)
	name := fmt.Sprintf("%s.%s_%d", []string{"billing", "mail", "search", "reports"}[n%4], []string{"charge", "send", "index", "export"}[n/10], n)
	worker, at, id := fmt.Sprintf("celery@web-%d", rng.IntN(16)), benchMicros(i), benchID(i)
	wait, run := int64(rng.ExpFloat64()*200_000), rng.ExpFloat64()*0.3
	sent := &state.Event{
		Kind: state.TaskSent, Hostname: fmt.Sprintf("gen%d@api-%d", 100+n%4, n%4), Micros: at, Queue: []string{"default", "high", "low", "mail"}[n%4],
		RoutingKey: "default",
		Present:    state.FieldName | state.FieldQueue | state.FieldExchange | state.FieldRoutingKey,
	}
	received := &state.Event{
		Kind: state.TaskReceived, Hostname: worker, PID: 7, Micros: at + 2_000,
		Args:   fmt.Sprintf("('%s', %d)", benchOrder(i), rng.IntN(100_000)),
		Kwargs: fmt.Sprintf("{'customer': %d, 'amount': %d.%02d, 'currency': '%s'}", rng.IntN(100_000), rng.IntN(500), rng.IntN(100), []string{"eur", "usd", "chf"}[rng.IntN(3)]),
		RootID: id, Present: state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldRootID | state.FieldRetries,
	}
	if i%5 == 4 {
		received.RootID, received.ParentID = benchID(i-i%5), benchID(i-1)
		received.Present |= state.FieldParentID
	}
	started := &state.Event{Kind: state.TaskStarted, Hostname: worker, PID: 7, Micros: at + 2_000 + wait}
	end := &state.Event{
		Kind: state.TaskSucceeded, Hostname: worker, PID: 7, Micros: at + 2_000 + wait + int64(run*1e6), Runtime: run,
		Result: fmt.Sprintf("{'status': 'ok', 'rows': %d}", rng.IntN(1000)), Present: state.FieldResult | state.FieldRuntime,
	}
	switch {
	case i%50 == 11:
		end.Kind, end.Present = state.TaskFailed, state.FieldException|state.FieldTraceback
		end.Exception = fmt.Sprintf("PaymentError('order %d is closed')", rng.IntN(100_000))
		end.Traceback = "Traceback (most recent call last):\n" + strings.Repeat("  File \"/app/shop/billing/gateway.py\", line 40, in charge\n    return self.post(order)\n", 6)
	case i%200 == 13:
		received.Retries = int64(1 + i%3)
	case i > million-500:
		end = started
	}
	events := []*state.Event{sent, received, started, end}
	for _, e := range events {
		e.ID, e.Name, e.ReceivedMicros = id, name, e.Micros
		e.Present |= state.FieldTimestamp | state.FieldPID
	}
	return events
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
	page, err := d.Tasks(b.Context(), history.TaskRequest{Query: parse(b, "id:"+benchID(million/2)), Limit: 1, Now: benchNow})
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
	ask := func(b *testing.B, c benchQuery, i int) history.TaskRequest {
		b.Helper()
		r := history.TaskRequest{Query: parse(b, c.query(i)), Sort: c.sort}
		if c.middle {
			r.From = middle
		}
		return r
	}
	readAll(b, dir)
	for _, c := range benchQueries {
		b.Run(c.name+"/warm", func(b *testing.B) {
			latency(b, func(i int, timed func(func())) {
				r := ask(b, c, i)
				timed(func() { list(d, r, c.want) })
			})
		})
		b.Run(c.name+"/count", func(b *testing.B) {
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
		id := benchID(i * 7919 % million)
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
	for _, c := range benchQueries {
		b.Run(c.name+"/cold", func(b *testing.B) {
			latency(b, func(i int, timed func(func())) {
				d, r := cold(b, dir), ask(b, c, i)
				timed(func() { list(d, r, c.want) })
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

type benchQuery struct {
	name   string
	query  func(i int) string
	sort   query.Sort
	middle bool
	want   int
}

func always(q string) func(int) string { return func(int) string { return q } }

func numbered(format string, n int) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i%n) }
}

var benchQueries = []benchQuery{
	{name: "list", query: always(""), want: 50},
	{name: "middle", query: always(""), middle: true, want: 50},
	{name: "sort=-run", query: always(""), sort: query.Sort{Field: query.Run}, want: 50},
	{name: "sort=sent", query: always(""), sort: query.Sort{Field: query.Sent, Ascending: true}, want: 50},
	{name: "id", query: func(i int) string { return "id:" + benchID(i*7919%million) }, want: 1},
	{name: "id prefix", query: func(i int) string { return "id:" + benchID(i * 7919 % million)[:5] + "*" }, want: 1},
	{name: "name", query: numbered("name:billing.charge_%d", 1), want: 50},
	{name: "name pattern", query: always("name:billing.*"), want: 50},
	{name: "worker", query: numbered("worker:celery@web-%d", 16), want: 50},
	{name: "queue", query: always("queue:high"), want: 50},
	{name: "client", query: always("client:gen101@api-1"), want: 50},
	{name: "exchange", query: always(`exchange:*`), want: 50},
	{name: "routing key", query: always("routing_key:default"), want: 50},
	{name: "root", query: func(i int) string { return "root:" + benchID(i*7919%million/5*5) }, want: 2},
	{name: "parent", query: func(i int) string { return "parent:" + benchID(i*7919%million/5*5+3) }, want: 1},
	{name: "state", query: always("state:failure"), want: 50},
	{name: "not state", query: always("-state:success"), want: 50},
	{name: "active", query: always("is:active"), want: 50},
	{name: "retried", query: always("is:retried"), want: 50},
	{name: "sent", query: always("sent:-1h.."), want: 50},
	{name: "sent, old", query: always("sent:..-5d"), want: 50},
	{name: "started", query: always("started:-3d..-2d"), want: 50},
	{name: "finished", query: always("finished:-30m.."), want: 50},
	{name: "wait, many", query: always("wait:>100ms"), want: 50},
	{name: "wait, few", query: always("wait:>2s"), want: 30},
	{name: "run, 6000", query: always("run:>1.5s"), want: 50},
	{name: "retries", query: always("retries:>1"), want: 50},
	{name: "state and name", query: always("state:failure name:billing.*"), want: 50},
	{name: "state and worker", query: numbered("state:failure worker:celery@web-%d", 16), want: 50},
	{name: "state and run", query: always("state:failure run:>1s"), want: 0},
	{name: "name and run, sorted", query: always("name:mail.* run:>500ms"), sort: query.Sort{Field: query.Run}, want: 50},
	{name: "or", query: always("state:failure OR run:>2s"), want: 50},
	{name: "text, one task", query: func(i int) string { return "args:" + benchOrder(i*7919%million) }, want: 1},
	{name: "text, rare", query: numbered("exc:\"order %d is\"", 100_000), want: 0},
	{name: "text, common", query: always("currency"), want: 50},
	{name: "text, failures", query: always("trace:gateway.py"), want: 50},
	{name: "text, absent", query: always("nowheretobefound"), want: 0},
	{name: "text, absent of common parts", query: numbered("kwargs:\"99, 'amount': 499.%02d, 'currency': 'usd\"", 100), want: 0},
	{name: "free text", query: numbered("\"customer': %d,\"", 100_000), want: 0},
	{name: "free text, name", query: always("charge_4"), want: 50},
	{name: "text, two letters", query: always("kwargs:us"), want: 50},
	{name: "text and state", query: always("state:failure exc:closed"), want: 50},
	{name: "text and name", query: always("name:billing.charge_4 kwargs:chf"), want: 50},
}
