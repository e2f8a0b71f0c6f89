package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/metrics"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// scrape returns what /metrics answers to a request with these headers.
func scrape(t *testing.T, h http.Handler, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	o := web.Options{Backend: newBackend(t, state.Options{})}
	startWorkers(t, &o, nil)
	h, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w := scrape(t, h)
	if got, want := w.Header().Get("Content-Type"), "text/plain"; got != want {
		t.Errorf("content type = %q, want %q as Flower has it", got, want)
	}
	for _, want := range []string{
		`umbel_outbox_commands{state="pending"} 0`, "umbel_outbox_oldest_pending_seconds 0", "umbel_outbox_dead_letters 0",
		"umbel_outbox_breaker_open 0", "umbel_outbox_sent_total 0", "# TYPE umbel_events_total counter", "umbel_broker_connected ",
	} {
		if !strings.Contains(w.Body.String(), "\n"+want) {
			t.Errorf("no %q in:\n%s", want, w.Body)
		}
	}
}

func TestMetricsOfFlower(t *testing.T) {
	t.Parallel()
	b, counted := newBackend(t, state.Options{}), metrics.New(metrics.Options{RuntimeBuckets: []float64{1, 5}})
	for n, e := range []*state.Event{
		taskEvent(state.TaskReceived, "charged", 200), taskEvent(state.TaskStarted, "charged", 203), taskEvent(state.TaskSucceeded, "charged", 205),
		taskEvent(state.TaskReceived, "waits", 206),
	} {
		if n == 2 {
			e.Runtime, e.Present = 2, e.Present|state.FieldRuntime
		}
		b.Update(func(c *state.Cluster) {
			ch := c.Apply(e)
			counted.Add(e, &ch)
		})
	}
	b.Update(func(c *state.Cluster) { c.Expire(noon + 20_000_000) })
	o := web.Options{Backend: b, Metrics: web.MetricsOptions{Read: func() (m view.Metrics) {
		b.View(func(c state.View) {
			m = view.Metrics{Counted: counted.Snapshot(), Workers: c.Liveness(), Prefetched: c.Prefetched(), Counts: c.Counts()}
		})
		m.Counted.Sort()
		return m
	}}}
	h := newWeb(t, o)
	body := scrape(t, h).Body.String()
	for _, want := range []string{
		`flower_events_total{task="billing.charge",type="task-received",worker="celery@a"} 2.0`,
		`flower_events_created{task="billing.charge",type="task-received",worker="celery@a"} 1.7952624e+09`,
		`flower_task_runtime_seconds_bucket{task="billing.charge",worker="celery@a",le="1.0"} 0.0`,
		`flower_task_runtime_seconds_bucket{task="billing.charge",worker="celery@a",le="5.0"} 1.0`,
		`flower_task_runtime_seconds_bucket{task="billing.charge",worker="celery@a",le="+Inf"} 1.0`,
		`flower_task_runtime_seconds_sum{task="billing.charge",worker="celery@a"} 2.0`,
		`flower_task_prefetch_time_seconds{task="billing.charge",worker="celery@a"} 0.0`,
		`flower_worker_online{worker="celery@b/1%20ü"} 0.0`,
		`umbel_workers{status="offline"} 2.0`,
		`umbel_worker_last_seen_timestamp_seconds{worker="celery@a"} 1.7952624e+09`,
		`umbel_task_wait_seconds_sum{task="billing.charge"} 3.0`,
	} {
		if !strings.Contains(body, "\n"+want+"\n") {
			t.Errorf("no %q in:\n%s", want, body)
		}
	}
	if t.Failed() {
		return
	}
	text := scrape(t, h, "Accept", "application/openmetrics-text; version=1.0.0", "Accept-Encoding", "gzip")
	unzipped, err := gzip.NewReader(text.Body)
	if err != nil {
		t.Fatalf("not compressed: %v", err)
	}
	all, err := io.ReadAll(unzipped)
	if err != nil || !strings.HasSuffix(string(all), "\n# EOF\n") || !strings.Contains(string(all), "\n# TYPE flower_events counter\n") {
		t.Errorf("OpenMetrics: %v:\n%.2000s", err, all)
	}
}
