package sqlite_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// benchSource is a cluster without tasks that are not saved.
type benchSource struct{ c *state.Cluster }

func (s benchSource) View(f func(c state.View)) { f(s.c) }
func (s benchSource) Changed() <-chan struct{}  { return nil }
func (s benchSource) Notify()                   {}
func (s benchSource) Restored() bool            { return true }
func (s benchSource) Health() view.Health       { return view.Health{} }
func (s benchSource) Rates() view.Rates         { return view.Rates{} }

// BenchmarkPast reads random instants of a million tasks: what every page needs, then what some show.
func BenchmarkPast(b *testing.B) {
	d, _ := benchHistory(b)
	r, err := view.New(benchSource{state.New(state.Options{})}, d, func() time.Time { return benchNow })
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 9))
	at := func(b *testing.B) (*view.Past, int) {
		b.Helper()
		i := rng.IntN(million)
		p, err := r.At(b.Context(), time.UnixMicro(benchTasks.Micros(i)+200_000))
		if err != nil {
			b.Fatal(err)
		}
		return p, i
	}
	for name, read := range map[string]func(ctx context.Context, p *view.Past, i int) error{
		"instant": func(context.Context, *view.Past, int) error { return nil },
		"list": func(ctx context.Context, p *view.Past, _ int) error {
			_, err := p.Tasks(ctx, history.TaskRequest{Limit: 50})
			return err
		},
		"failures": func(ctx context.Context, p *view.Past, _ int) error {
			_, err := p.Tasks(ctx, history.TaskRequest{Query: query.New(query.Equal(query.State, string(state.Failure))), Limit: 50})
			return err
		},
		"worker": func(ctx context.Context, p *view.Past, i int) error {
			_, err := p.Tasks(ctx, history.TaskRequest{Query: query.New(query.Equal(query.Worker, "celery@web-3")), Limit: 50})
			return err
		},
		"task": func(ctx context.Context, p *view.Past, i int) error {
			_, err := p.Task(ctx, benchTasks.ID(max(i-5, 0)))
			return err
		},
		"steps": func(ctx context.Context, p *view.Past, _ int) error {
			_, _, err := p.Steps(ctx)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			var longest time.Duration
			for b.Loop() {
				start := time.Now()
				p, i := at(b)
				if err := read(b.Context(), p, i); err != nil {
					b.Fatal(err)
				}
				longest = max(longest, time.Since(start))
			}
			b.ReportMetric(float64(longest.Milliseconds()), "longest-ms")
		})
	}
}

// BenchmarkCauses lists what could have caused random tasks of a million, what they led to, and what neither, all read from the
// history.
func BenchmarkCauses(b *testing.B) {
	d, _ := benchHistory(b)
	rng := rand.New(rand.NewPCG(10, 10))
	for _, field := range []query.Field{query.Before, query.After, query.Concurrent, query.Cone} {
		b.Run(field.String(), func(b *testing.B) {
			var times []time.Duration
			found := 0
			for b.Loop() {
				start := time.Now()
				q := query.New(query.Equal(field, benchTasks.ID(rng.IntN(million))))
				q, err := view.ResolveCauses(b.Context(), view.Stored{TaskReader: d}, q, benchNow)
				if err != nil {
					b.Fatal(err)
				}
				page, err := d.Tasks(b.Context(), history.TaskRequest{Query: q, Limit: 50, Now: benchNow})
				if err != nil {
					b.Fatal(err)
				}
				times, found = append(times, time.Since(start)), found+len(page.Tasks)
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)*95/100].Microseconds())/1e3, "p95-ms")
			b.ReportMetric(float64(found)/float64(len(times)), "tasks")
		})
	}
}
