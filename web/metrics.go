package web

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5/middleware"

	"github.com/umbelhq/umbel/internal/prometheus"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/otlp"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/peers"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/web/live"
)

// DefaultQueueDrain is the time in which workers are to empty a queue, by default.
const DefaultQueueDrain = time.Minute

// MetricsOptions say what Prometheus is told beside what pages show.
type MetricsOptions struct {
	// Read returns what was counted of events and workers. Nil leaves out the metrics of both.
	Read func() view.Metrics
	// QueueDrain is the time within which the workers that are said to be needed empty a queue. 0 means DefaultQueueDrain.
	QueueDrain time.Duration
	// Spans returns what became of the spans for OpenTelemetry. It is nil if none are sent.
	Spans func() otlp.Stats
}

// metricsHandler serves metrics to Prometheus, in the format that it asks for.
type metricsHandler struct {
	backend    Backend
	commands   *command.Service     // may be nil, and so may its Relay
	outboxes   *outboxwatch.Watcher // may be nil
	peers      *peers.Peers         // may be nil
	live       func() live.Stats
	read       func() view.Metrics // may be nil
	queueDrain time.Duration
	spans      func() otlp.Stats // may be nil
	version    string
	now        func() time.Time
	log        *slog.Logger
}

func newMetricsHandler(o Options, stats func() live.Stats) *metricsHandler {
	return &metricsHandler{
		backend: o.Backend, commands: o.Commands, outboxes: o.AppOutboxes, peers: o.Peers, live: stats, read: o.Metrics.Read, spans: o.Metrics.Spans,
		queueDrain: cmp.Or(o.Metrics.QueueDrain, DefaultQueueDrain), version: o.Version, now: o.Now, log: o.Logger,
	}
}

// compressed compresses metrics as fast as it can: they are large and alike.
func compressed(h *metricsHandler) http.HandlerFunc {
	return middleware.Compress(1, prometheus.MediaTypes()...)(h).ServeHTTP
}

func (h *metricsHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	format, contentType := prometheus.Negotiate(r.Header.Get("Accept"))
	w.Header().Set("Content-Type", contentType)
	w.Header().Add("Vary", "Accept")
	s := &scrape{metricsHandler: h, Writer: prometheus.NewWriter(w, format)}
	s.write(r.Context())
	s.process()
	_ = s.Close() // the client is gone
}

// scrape writes the metrics once. Families are written one after the other, each with all of its samples.
type scrape struct {
	*metricsHandler
	*prometheus.Writer
}

func (s *scrape) write(ctx context.Context) {
	m := view.Metrics{}
	if s.read != nil {
		m = s.read()
		s.flower(m)
		s.tasks(m)
		s.workers(m)
	}
	s.ingest(s.backend.Health(), m)
	s.history(s.backend.Health(), m)
	s.peer()
	s.sockets()
	s.queues(m)
	s.outbox(ctx)
	s.appOutboxes()
	s.otlp()
}

// count writes a counter without labels.
func (s *scrape) count(name, help string, value float64) {
	s.Family(prometheus.Counter, name, help)
	s.Add(value)
}

// gauge writes a gauge without labels.
func (s *scrape) gauge(name, help string, value float64) {
	s.Family(prometheus.Gauge, name, help)
	s.Add(value)
}

// histogram writes a histogram without labels.
func (s *scrape) histogram(name, help string, h *prometheus.Histogram) {
	s.Family(prometheus.HistogramKind, name, help)
	s.Histogram(h)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
