package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/umbelhq/umbel/monitor/metrics"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// BenchmarkScrape scrapes a cluster of 5,000 workers that run tasks of 1,000 names, more pairs than are counted on their own. Sub-benchmark copy is
// what a scrape does under the lock, during which nothing is folded.
func BenchmarkScrape(b *testing.B) {
	c, r := state.New(state.Options{}), metrics.New(metrics.Options{})
	for n := range 60_000 {
		worker, name := fmt.Sprintf("celery@worker-%d", n%5_000), fmt.Sprintf("app.tasks.name_%d", n*7%1_000)
		for i, kind := range []state.Kind{state.TaskReceived, state.TaskStarted, state.TaskSucceeded} {
			e := taskEvent(kind, fmt.Sprintf("%08d-0000-4000-8000-000000000000", n), 3*n+i)
			e.Hostname, e.Name, e.Runtime, e.Present = worker, name, float64(n%977)/100, e.Present|state.FieldRuntime
			e.ReceivedMicros = e.Micros
			ch := c.Apply(e)
			r.Add(e, &ch)
		}
	}
	read := func() view.Metrics {
		m := view.Metrics{Counted: r.Snapshot(), Workers: c.Liveness(), Prefetched: c.Prefetched(), Counts: c.Counts()}
		return m
	}
	h, err := web.New(web.Options{Backend: newBackend(b, state.Options{}), Metrics: web.MetricsOptions{Read: func() view.Metrics {
		m := read()
		m.Counted.Sort()
		return m
	}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("copy", func(b *testing.B) {
		for range b.N {
			read()
		}
	})
	for name, accept := range map[string]string{
		"text": "", "openmetrics": "application/openmetrics-text;version=1.0.0",
		"protobuf": "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for range b.N {
				req := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil)
				req.Header.Set("Accept", accept)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, req)
				body, _ := io.ReadAll(w.Body)
				size = len(body)
			}
			b.ReportMetric(float64(size)/1e6, "MB")
		})
	}
}
