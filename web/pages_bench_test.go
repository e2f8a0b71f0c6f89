package web_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web"
)

// BenchmarkPages serves every page of a week of tasks: UMBEL_BENCH_TASKS of them, or 2,000. Each is asked for twice: the first
// time, nothing is cached in the handler, which is a new one. The history is kept in the directory that UMBEL_BENCH_PAGES names, if
// it is set, for the next run.
func BenchmarkPages(b *testing.B) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("UMBEL_BENCH_TASKS"), "2000"))
	if err != nil {
		b.Fatal(err)
	}
	o, pages := benchPages(b, n)
	for _, path := range pages {
		b.Run(strings.ReplaceAll(path, "/", "|"), func(b *testing.B) {
			var first, again []time.Duration
			for b.Loop() {
				h, err := web.New(o)
				if err != nil {
					b.Fatal(err)
				}
				for _, took := range []*[]time.Duration{&first, &again} {
					w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)
					start := time.Now()
					h.ServeHTTP(w, r)
					*took = append(*took, time.Since(start))
					if w.Code != http.StatusOK && !strings.HasPrefix(path, "/act/") {
						b.Fatalf("%d: %s", w.Code, words(w.Body.String()))
					}
				}
			}
			median := func(took []time.Duration) float64 {
				slices.Sort(took)
				return float64(took[len(took)/2].Microseconds()) / 1000
			}
			b.ReportMetric(median(first), "first-ms")
			b.ReportMetric(median(again), "again-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// benchActive is how many of the tasks have not ended.
const benchActive = 50

// benchPages returns a dashboard of n tasks, and an address for each of its routes.
func benchPages(b *testing.B, n int) (web.Options, []string) {
	b.Helper()
	dir := cmp.Or(os.Getenv("UMBEL_BENCH_PAGES"), b.TempDir())
	complete := filepath.Join(dir, "complete")
	_, err := os.Stat(complete)
	c := testcluster.Open(b, dir, state.Options{MaxTasks: 200_000, Track: err != nil})
	start := time.Now()
	benchTasks(c, n)
	b.Logf("%d tasks in %v", n, time.Since(start))
	index(b, c)
	if err := os.WriteFile(complete, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	broker := inproc.New(inproc.Options{})
	broker.Declare("mail")
	_, watcher := watchLocks(b, c)
	commands, err := command.New(command.Options{Client: controlClient(b, broker), Outbox: c.DB, Rules: c.DB, Tasks: c, Locks: watcher})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := commands.Control(b.Context(), command.Caller{}, command.ControlRequest{Method: "pool_grow", Arguments: map[string]any{"n": 1}, Workers: []string{"celery@web-1"}}); err != nil {
		b.Fatal(err)
	}
	now := time.UnixMicro(noon + 1_000_000)
	o := web.Options{
		Backend: c, Commands: commands, Alerts: newAlerts(b, nil), AppOutboxes: watched(b, newShopOutbox()), Now: func() time.Time { return now },
	}
	h, err := web.New(o)
	if err != nil {
		b.Fatal(err)
	}
	run(b, commands.Run)
	eventually(b, "the queue is known", func() bool { return visit(b, h, "/queues/mail").Code == http.StatusOK })
	failures, err := c.History().FailureGroups(b.Context(), history.FailureRequest{Limit: 1, Now: now})
	if err != nil {
		b.Fatal(err)
	}
	repeated, err := c.Duplicates(b.Context(), history.DuplicateRequest{Limit: 1})
	if err != nil {
		b.Fatal(err)
	}
	newest, old, root := benchTaskID(n-1), benchTaskID(n/2), benchTaskID(n/2-n/2%5)
	named := map[string][]string{
		"/tasks/*":             {"/tasks/" + newest, "/tasks/" + old},
		"/tasks/{id}/compare":  {"/tasks/" + newest + "/compare?with=" + old},
		"/types/*":             {"/types/billing.charge_0", "/types/billing.charge_0?last=7d"},
		"/workers/*":           {"/workers/celery@web-1", "/workers/celery@web-1?tab=history", "/workers/celery@web-1?tab=tasks", "/workers/celery@web-1?tab=clock"},
		"/workflows/*":         {"/workflows/" + root, "/workflows/" + root + "?tab=graph", "/workflows/" + root + "?tab=spacetime"},
		"/failures/{id}":       {templates.FailurePath(failures.Groups[0].ID.String())},
		"/duplicates/*":        {templates.DuplicatePath(repeated.Groups[0].Key)},
		"/queues/*":            {"/queues/mail"},
		"/outbox/{request}":    {"/outbox/1"},
		"/views/*":             nil,
		"/login/{provider}":    nil,
		"/tasks":               {"/tasks", "/tasks?q=state%3Afailure", "/tasks?q=is%3Alost", "/tasks?q=name%3Abilling.charge_0", "/tasks?chart=7d", "/tasks?sort=-run", "/tasks?sort=name", "/tasks?q=41834"},
		"/types":               {"/types", "/types?last=7d", "/types?last=30d"},
		"/workflows":           {"/workflows", "/workflows?state=failed"},
		"/":                    {"/", "/?chart=7d"},
		"/workers/idempotency": nil, // which waits for workers
	}
	var pages []string
	for _, route := range h.Registered() {
		if route.Method != http.MethodGet || strings.HasPrefix(route.Pattern, "/api/") || slices.Contains(noPages, route.Pattern) {
			continue
		}
		paths, known := named[route.Pattern]
		if !known && strings.ContainsAny(route.Pattern, "*{") {
			b.Fatalf("no address of %s is known", route.Pattern)
		}
		if !known {
			paths = []string{route.Pattern}
		}
		pages = append(pages, paths...)
	}
	return o, pages
}

// index indexes texts until that changes nothing more.
func index(b *testing.B, c *testcluster.Cluster) {
	b.Helper()
	run(b, func(ctx context.Context) error { return c.DB.Run(ctx, func([]string) {}) })
	for before := -1; before != c.DB.Health().Unindexed; <-time.After(5 * time.Second) {
		before = c.DB.Health().Unindexed
	}
}

// run calls f until the benchmark ends.
func run(b *testing.B, f func(ctx context.Context) error) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = f(ctx) })
	b.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func benchTaskID(i int) string {
	return fmt.Sprintf("%08x-6f61-4a64-9e1f-%012x", uint32(i)*2654435761, i)
}

// benchTasks applies the events of n tasks in the week before noon: of 40 names, on 16 workers, of 4 queues. One in 50 fails, one in 200
// was retried, one in 100 repeats the arguments of another, and every five are a workflow.
func benchTasks(c *testcluster.Cluster, n int) {
	rng := rand.New(rand.NewPCG(1, 1))
	gap := int64(7*24*time.Hour/time.Microsecond) / int64(n)
	const present = state.FieldClock | state.FieldPID | state.FieldTimestamp
	var events []*state.Event
	for i := range n {
		at := noon - int64(n-i)*gap
		k := rng.IntN(40)
		name := fmt.Sprintf("%s.%s_%d", []string{"billing", "mail", "search", "reports"}[k%4], []string{"charge", "send", "index", "export"}[k/10], k)
		worker, queue := fmt.Sprintf("celery@web-%d", rng.IntN(16)), []string{"default", "high", "low", "mail"}[k%4]
		wait, run := int64(rng.ExpFloat64()*200_000), rng.ExpFloat64()*0.3
		order := i
		if i%100 == 3 {
			order = i / 1000
		}
		received := &state.Event{
			Kind: state.TaskReceived, Args: fmt.Sprintf("('%08x', %d)", uint32(order)*2654435761, order), RootID: benchTaskID(i - i%5),
			Kwargs:  fmt.Sprintf("{'customer': %d, 'currency': '%s'}", order%100_000, []string{"eur", "usd", "chf"}[order%3]),
			Present: state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldRootID | state.FieldRetries,
		}
		if i%5 > 0 {
			received.ParentID = benchTaskID(i - i%5 + (i%5-1)/2)
			received.Present |= state.FieldParentID
		}
		if i%200 == 13 {
			received.Retries = int64(1 + i%3)
		}
		end := &state.Event{
			Kind: state.TaskSucceeded, Result: fmt.Sprintf("{'rows': %d}", i%1000), Runtime: run, Present: state.FieldResult | state.FieldRuntime,
		}
		if i%50 == 11 {
			end = &state.Event{
				Kind: state.TaskFailed, Exception: fmt.Sprintf("PaymentError%d('order %d is closed')", k, i), Present: state.FieldException | state.FieldTraceback,
				Traceback: "Traceback (most recent call last):\n" + strings.Repeat("  File \"/app/shop/billing/gateway.py\", line 40, in charge\n    return self.post(order)\n", 6),
			}
		}
		for j, e := range []*state.Event{{Kind: state.TaskSent, Queue: queue, RoutingKey: queue, Present: state.FieldName | state.FieldQueue | state.FieldRoutingKey}, received, {Kind: state.TaskStarted}, end} {
			if e == end && i >= n-benchActive {
				break
			}
			e.ID, e.Name, e.Hostname, e.PID, e.Clock, e.Present = benchTaskID(i), name, worker, 7, int64(4*i+j+1), e.Present|present
			e.Micros = at + []int64{0, 2_000, 2_000 + wait, 2_000 + wait + int64(run*1e6)}[j]
			e.ReceivedMicros = e.Micros
			if e.Kind == state.TaskSent {
				e.Hostname = fmt.Sprintf("gen%d@api", 100+k%4)
			}
			events = append(events, e)
		}
		if i%1000 == 999 || i == n-1 {
			c.Apply(events...)
			events = events[:0]
		}
	}
}
