// Package otlp sends the attempts at tasks as OpenTelemetry spans to a collector when they have ended: OTLP over HTTP, in its JSON
// form. Spans hold no payload.
package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/monitor/workflow/export"
	"github.com/umbelhq/umbel/state"
)

const (
	maxWaiting = 20_000           // ends of attempts that wait to be sent
	maxBatch   = 500              // spans of one request
	settle     = 2 * time.Second  // from the end of an attempt until it is sent, for events that come late
	timeout    = 10 * time.Second // of a request
	lastTry    = 3 * time.Second  // of the last requests, when the program ends
	minPause   = time.Second      // after a failure, doubled with each
	maxPause   = time.Minute
	tracesPath = "/v1/traces"
)

// End says which attempt at a task has ended.
type End struct {
	Task   string
	Worker string
	Micros int64 // timestamp of the event that says so
}

// Options of an Exporter. Endpoint, Task and Offsets are required.
type Options struct {
	// Endpoint is the URL of a collector. Without a path, spans are sent to /v1/traces.
	Endpoint string
	Headers  http.Header // of each request, which may hold secrets
	// Task returns a task, or history.ErrNotFound.
	Task func(ctx context.Context, id string) (state.Task, error)
	// Offsets returns how far the clocks of hosts are ahead of the local one, µs.
	Offsets   func() map[string]int64
	Transport http.RoundTripper // nil means http.DefaultTransport
	Logger    *slog.Logger      // nil discards
}

// Stats count spans since the start.
type Stats struct {
	Sent     uint64
	Dropped  uint64 // since too many waited
	Rejected uint64 // by the collector
	Waiting  int
}

// Exporter sends spans. It is safe for concurrent use.
type Exporter struct {
	options  Options
	endpoint string
	client   http.Client
	waiting  chan due
	failing  bool // the last request failed

	sent, dropped, rejected atomic.Uint64
}

// due is an end and when to send it.
type due struct {
	End
	at time.Time
}

// New validates o and sends nothing.
func New(o Options) (*Exporter, error) {
	endpoint, err := Endpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	x := &Exporter{options: o, endpoint: endpoint, waiting: make(chan due, maxWaiting)}
	x.client.Transport = o.Transport
	x.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return x, nil
}

// Endpoint returns the URL to which spans are sent, by that of a collector.
func Endpoint(collector string) (string, error) {
	u, err := url.Parse(collector)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("not a URL such as http://collector:4318")
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = tracesPath
	}
	return u.String(), nil
}

// Ended notes the end of an attempt, and copies e. It never blocks: if too many wait, the span is dropped and counted.
func (x *Exporter) Ended(e End) {
	e.Task, e.Worker = strings.Clone(e.Task), strings.Clone(e.Worker)
	select {
	case x.waiting <- due{e, time.Now().Add(settle)}:
	default:
		x.dropped.Add(1)
	}
}

// Stats returns what was counted.
func (x *Exporter) Stats() Stats {
	return Stats{Sent: x.sent.Load(), Dropped: x.dropped.Load(), Rejected: x.rejected.Load(), Waiting: len(x.waiting)}
}

// Run sends spans until ctx ends, and then those that wait, unless the collector fails. It returns nil.
func (x *Exporter) Run(ctx context.Context) error {
	for {
		batch := x.next(ctx)
		if ctx.Err() != nil {
			x.finish(ctx, batch)
			return nil
		}
		x.deliver(ctx, batch)
	}
}

// finish sends what waits when the program ends.
func (x *Exporter) finish(ctx context.Context, batch []due) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTry)
	defer cancel()
	for batch = x.drain(batch); len(batch) > 0; batch = x.drain(nil) {
		if x.failing || ctx.Err() != nil {
			x.dropped.Add(uint64(len(batch)))
			continue
		}
		x.deliver(ctx, batch)
	}
}

// next waits until ends are due, or ctx ends.
func (x *Exporter) next(ctx context.Context) (batch []due) {
	select {
	case <-ctx.Done():
		return nil
	case first := <-x.waiting:
		pause(ctx, time.Until(first.at))
		batch = x.drain([]due{first})
		pause(ctx, time.Until(batch[len(batch)-1].at))
		return batch
	}
}

// drain adds what waits to a batch.
func (x *Exporter) drain(batch []due) []due {
	for len(batch) < maxBatch {
		select {
		case d := <-x.waiting:
			batch = append(batch, d)
		default:
			return batch
		}
	}
	return batch
}

// deliver sends a batch. It repeats that as long as it may help, until ctx ends.
func (x *Exporter) deliver(ctx context.Context, batch []due) {
	spans, err := x.spans(context.WithoutCancel(ctx), batch)
	if err != nil {
		x.options.Logger.ErrorContext(ctx, "spans not read", "error", err)
		x.dropped.Add(uint64(len(batch)))
		return
	}
	if spans.Len() == 0 {
		return
	}
	var body bytes.Buffer
	if err := spans.Write(&body); err != nil {
		x.rejected.Add(uint64(spans.Len()))
		return
	}
	for wait := minPause; ; wait = min(2*wait, maxPause) {
		after, err := x.post(ctx, body.Bytes())
		if err == nil {
			x.sent.Add(uint64(spans.Len()))
			if x.failing {
				x.options.Logger.InfoContext(ctx, "collector takes spans again", "url", x.redacted())
			}
			x.failing = false
			return
		}
		if !x.failing {
			x.options.Logger.WarnContext(ctx, "spans not sent", "url", x.redacted(), "error", err)
		}
		x.failing = true
		if after < 0 {
			x.rejected.Add(uint64(spans.Len()))
			return
		}
		pause(ctx, max(after, wait/2+rand.N(wait/2))) // several programs do not ask at once
		if ctx.Err() != nil {
			x.dropped.Add(uint64(spans.Len()))
			return
		}
	}
}

// redacted is the endpoint without a password.
func (x *Exporter) redacted() string {
	u, err := url.Parse(x.endpoint)
	if err != nil {
		return ""
	}
	return u.Redacted()
}

// post sends one request. If that fails, after is how long to wait at least before the next, negative if none would help.
func (x *Exporter) post(ctx context.Context, body []byte) (after time.Duration, err error) {
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { // what is on its way has a little time when the program ends
		pause(sending, lastTry)
		cancel()
	})()
	r, err := http.NewRequestWithContext(sending, http.MethodPost, x.endpoint, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}
	maps.Copy(r.Header, x.options.Headers)
	r.Header.Set("Content-Type", "application/json")
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "umbel")
	}
	answer, err := x.client.Do(r)
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		return 0, wrong.Err // without the URL, which may hold a password
	}
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()                                      //nolint:errcheck // only read
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)) // so that the connection can be used again
	switch answer.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return 0, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return retryAfter(answer.Header), fmt.Errorf("the collector responded %s", answer.Status)
	}
	return -1, fmt.Errorf("the collector responded %s", answer.Status)
}

// retryAfter is how long a collector asks to wait, at most maxPause.
func retryAfter(h http.Header) time.Duration {
	d, err := time.ParseDuration(h.Get("Retry-After") + "s")
	if err != nil {
		return 0
	}
	return min(max(d, 0), maxPause)
}

// pause waits, until ctx ends at most.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// spans reads the attempts that have ended. What is no longer known is left out.
func (x *Exporter) spans(ctx context.Context, batch []due) (s export.Spans, err error) {
	offsets := x.options.Offsets()
	parents := make(map[string]*workflow.Task)
	for _, d := range batch {
		t, err := x.options.Task(ctx, d.Task)
		if errors.Is(err, history.ErrNotFound) {
			continue
		}
		if err != nil {
			return s, err
		}
		tasks := []workflow.Task{workflow.Of(&t, offsets)}
		if p := tasks[0].ParentID; p != "" {
			if _, read := parents[p]; !read {
				parents[p] = x.task(ctx, p, offsets)
			}
			if parent := parents[p]; parent != nil {
				tasks = append(tasks, *parent)
			}
		}
		root := tasks[0].RootID
		if root == "" {
			root = t.ID
		}
		w := workflow.Assemble(root, tasks)
		for i := range w.Tasks {
			for n, e := range w.Tasks[i].Executions {
				if w.Tasks[i].ID == d.Task && e.Worker == d.Worker && e.EndedAt+e.Ahead == d.Micros {
					s.Add(&w, i, n)
				}
			}
		}
	}
	return s, nil
}

// task reads a task, nil if it is not known.
func (x *Exporter) task(ctx context.Context, id string, offsets map[string]int64) *workflow.Task {
	t, err := x.options.Task(ctx, id)
	if err != nil {
		return nil
	}
	return new(workflow.Of(&t, offsets))
}
