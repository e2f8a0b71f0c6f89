package otlp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/otlp"
	"github.com/umbelhq/umbel/state"
)

const root = "0b75f1a2-7b0e-4f0a-9a54-0d6f3f1f9a11"

// collector is an OTLP receiver: it answers with status, and keeps the spans of requests that it accepts.
type collector struct {
	mu                 sync.Mutex
	status, retryAfter int
	requests           int
	spans              []span
}

type span struct{ TraceID, SpanID, ParentSpanID, Name, Worker string }

// RoundTrip hands requests to the receiver without a network.
func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Result(), nil
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if c.retryAfter != 0 {
		w.Header().Set("Retry-After", strconv.Itoa(c.retryAfter))
	}
	w.WriteHeader(c.status)
	var request struct {
		ResourceSpans []struct {
			Resource struct {
				Attributes []struct {
					Key   string
					Value struct{ StringValue string }
				}
			}
			ScopeSpans []struct{ Spans []span }
		}
	}
	if c.status != http.StatusOK || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" || json.NewDecoder(r.Body).Decode(&request) != nil {
		return
	}
	for _, resource := range request.ResourceSpans {
		for _, s := range resource.ScopeSpans[0].Spans {
			s.Worker = resource.Resource.Attributes[1].Value.StringValue
			c.spans = append(c.spans, s)
		}
	}
}

// answer sets how the collector answers from now on.
func (c *collector) answer(status, retryAfter int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status, c.retryAfter = status, retryAfter
}

// asked is how many requests there were.
func (c *collector) asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests
}

// tasks are a task that was retried once, and its child.
func tasks(_ context.Context, id string) (state.Task, error) {
	run := func(worker string, s state.State, attempt, started, ended int64) state.Execution {
		e := state.Execution{Worker: worker, State: s, Attempt: attempt, Times: state.Times{ReceivedAt: started, StartedAt: started}}
		if s == state.Retry {
			e.RetriedAt = ended
		} else {
			e.SucceededAt = ended
		}
		return e
	}
	name := "shop.order"
	t := state.Task{ID: id, Name: &name, State: state.Success, RootID: new(root)}
	switch id {
	case root:
		t.Executions = []state.Execution{run("celery@a", state.Retry, 0, 10, 20), run("celery@b", state.Success, 1, 30, 90)}
	case "child":
		t.ParentID, t.Executions = new(root), []state.Execution{run("celery@a", state.Success, 0, 40, 50)}
	default:
		return t, history.ErrNotFound
	}
	return t, nil
}

// run runs an exporter in a bubble, in which time passes at once.
func run(t *testing.T, c *collector, test func(x *otlp.Exporter, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x, err := otlp.New(otlp.Options{Endpoint: "http://collector:4318", Task: tasks, Offsets: func() map[string]int64 { return nil }, Transport: c})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- x.Run(ctx) }()
		stop := func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		test(x, stop)
	})
}

// pass lets time pass, until all that happens in it is done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestAttemptsAreSentWhenTheyHaveEnded(t *testing.T) {
	t.Parallel()
	c := &collector{status: http.StatusOK}
	run(t, c, func(x *otlp.Exporter, stop func()) {
		x.Ended(otlp.End{Task: root, Worker: "celery@a", Micros: 20})
		x.Ended(otlp.End{Task: "child", Worker: "celery@a", Micros: 50})
		x.Ended(otlp.End{Task: "gone", Worker: "celery@a", Micros: 50})
		x.Ended(otlp.End{Task: root, Worker: "celery@b", Micros: 90})
		pass(5 * time.Second)
		if len(c.spans) != 3 || c.requests != 1 {
			t.Fatalf("%d requests, spans %+v", c.requests, c.spans)
		}
		first, child, second := c.spans[0], c.spans[1], c.spans[2]
		for _, s := range c.spans {
			if s.TraceID != "0b75f1a27b0e4f0a9a540d6f3f1f9a11" || s.Name != "run shop.order" {
				t.Errorf("span %+v", s)
			}
		}
		if first.ParentSpanID != "" || second.ParentSpanID != first.SpanID || child.ParentSpanID != second.SpanID || second.Worker != "celery@b" {
			t.Errorf("spans %+v", c.spans)
		}
		if s := x.Stats(); s != (otlp.Stats{Sent: 3}) {
			t.Errorf("stats = %+v", s)
		}
		stop()
	})
}

// A collector that is away delays spans and loses none; one that refuses them is not asked again.
func TestCollectorsThatFail(t *testing.T) {
	t.Parallel()
	c := &collector{status: http.StatusServiceUnavailable, retryAfter: 40}
	run(t, c, func(x *otlp.Exporter, stop func()) {
		x.Ended(otlp.End{Task: "child", Worker: "celery@a", Micros: 50})
		pass(30 * time.Second)
		if c.asked() != 1 {
			t.Errorf("%d requests before the collector asked for one", c.asked())
		}
		c.answer(http.StatusOK, 0)
		pass(30 * time.Second)
		if x.Stats().Sent != 1 {
			t.Errorf("stats = %+v, want the span sent", x.Stats())
		}
		c.answer(http.StatusBadRequest, 0)
		x.Ended(otlp.End{Task: "child", Worker: "celery@a", Micros: 50})
		pass(5 * time.Minute)
		if got := x.Stats(); got.Rejected != 1 || c.asked() != 3 {
			t.Errorf("stats = %+v after %d requests, want one rejected after 3", got, c.asked())
		}
		stop()
	})
}

// Ends beyond the bound are counted, and nothing waits for the collector. When the program ends, what waits is given up.
func TestNothingWaitsForACollector(t *testing.T) {
	t.Parallel()
	c := &collector{status: http.StatusServiceUnavailable}
	run(t, c, func(x *otlp.Exporter, stop func()) {
		for range 30_000 {
			x.Ended(otlp.End{Task: "child", Worker: "celery@a", Micros: 50})
		}
		pass(time.Hour)
		if got := x.Stats(); got.Dropped == 0 || got.Waiting+int(got.Dropped) < 29_000 || c.asked() > 130 {
			t.Errorf("stats = %+v after %d requests", got, c.asked())
		}
		stop()
		if got := x.Stats(); got.Dropped != 30_000 {
			t.Errorf("stats = %+v, want all dropped", got)
		}
	})
}

// What waits is sent when the program ends.
func TestRestIsSentAtTheEnd(t *testing.T) {
	t.Parallel()
	c := &collector{status: http.StatusOK}
	run(t, c, func(x *otlp.Exporter, stop func()) {
		for range 1_200 {
			x.Ended(otlp.End{Task: "child", Worker: "celery@a", Micros: 50})
		}
		stop()
		if len(c.spans) != 1_200 {
			t.Errorf("%d spans, want 1,200: %+v", len(c.spans), x.Stats())
		}
	})
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"http://c:4318": "http://c:4318/v1/traces", "https://c/": "https://c/v1/traces", "http://c/otlp/v1/traces": "http://c/otlp/v1/traces",
		"c:4318": "error", "ftp://c": "error", "": "error", "http://": "error",
	} {
		got, err := otlp.Endpoint(in)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("endpoint of %q = %q, want %q", in, got, want)
		}
	}
}
