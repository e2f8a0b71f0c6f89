package main

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/monitor/metrics"
	"github.com/umbelhq/umbel/monitor/otlp"
)

// metricsFlags say what Prometheus and OpenTelemetry are told.
type metricsFlags struct {
	RuntimeBuckets      buckets       `env:"UMBEL_RUNTIME_BUCKETS" placeholder:"SECONDS,…" help:"Upper bounds of the buckets of run times by task and worker in /metrics. Flower's by default."`
	PurgeOfflineWorkers age           `env:"UMBEL_PURGE_OFFLINE_WORKERS" placeholder:"AGE" help:"When series of an offline worker go from /metrics. By default, when the worker is forgotten."`
	QueueDrain          time.Duration `env:"UMBEL_QUEUE_DRAIN" default:"1m" placeholder:"DURATION" help:"Time within which the workers that /metrics says are needed empty a queue."`
	OTLPEndpoint        string        `name:"otlp-endpoint" env:"UMBEL_OTLP_ENDPOINT" placeholder:"URL" help:"Send each attempt at a task that ends to an OpenTelemetry collector, as a span: OTLP over HTTP, such as http://collector:4318."`
	OTLPHeaders         []string      `name:"otlp-header" sep:"none" placeholder:"NAME=VALUE" help:"Header of each request to the collector; can be repeated. OTEL_EXPORTER_OTLP_HEADERS holds a list of them, which no list of processes shows."`
}

// metrics sets what the flags say.
func (f *metricsFlags) metrics(o *dashboard.Options) error {
	if f.QueueDrain <= 0 {
		return usageError{fmt.Errorf("--queue-drain %v is not more than 0", f.QueueDrain)}
	}
	o.Metrics = ingest.MetricsOptions{RuntimeBuckets: f.RuntimeBuckets, PurgeOfflineWorkers: time.Duration(f.PurgeOfflineWorkers)}
	o.QueueDrain, o.OTLPEndpoint = f.QueueDrain, f.OTLPEndpoint
	if f.OTLPEndpoint == "" {
		return nil
	}
	if _, err := otlp.Endpoint(f.OTLPEndpoint); err != nil {
		return usageError{fmt.Errorf("--otlp-endpoint: %w", err)}
	}
	var err error
	if o.OTLPHeaders, err = otlp.Headers(os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), f.OTLPHeaders); err != nil {
		return usageError{fmt.Errorf("--otlp-header or OTEL_EXPORTER_OTLP_HEADERS: %w", err)}
	}
	return nil
}

// buckets are the upper bounds of the buckets of a histogram.
type buckets []float64

// UnmarshalText reads numbers separated by commas, the last of which may be inf.
func (b *buckets) UnmarshalText(text []byte) error {
	var list buckets
	for part := range strings.SplitSeq(string(text), ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return fmt.Errorf("%q is no number", part)
		}
		list = append(list, v)
	}
	if n := len(list) - 1; math.IsInf(list[n], 1) {
		list = list[:n]
	}
	if err := metrics.CheckBuckets(list); err != nil {
		return err
	}
	*b = list
	return nil
}
