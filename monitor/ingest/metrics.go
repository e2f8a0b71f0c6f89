package ingest

import (
	"time"

	"github.com/umbelhq/umbel/monitor/metrics"
	"github.com/umbelhq/umbel/state"
)

// MetricsOptions say what is counted of events for Prometheus.
type MetricsOptions struct {
	// RuntimeBuckets are as in metrics.Options.
	RuntimeBuckets []float64
	// PurgeOfflineWorkers is after how much time without events the series of an offline worker go, to begin at 0 if it comes back.
	// 0 means when the worker is forgotten.
	PurgeOfflineWorkers time.Duration
}

// purgePause is the time between looks for series of workers that are gone.
const purgePause = 10 * time.Second

// Metrics is what Prometheus is told of events and workers. Its fields are of moments that follow one another.
type Metrics struct {
	Counted    *metrics.Snapshot
	Workers    []state.Liveness // without those whose series are gone
	Prefetched []state.Prefetched
	Counts     state.Counts
	Journal    int // bytes of events that are not in the history yet
}

// Metrics returns what was counted since the start, and the present state.
func (in *Ingester) Metrics() Metrics {
	var m Metrics
	var workers []state.Liveness
	for _, read := range []func(){ // events are folded in between
		func() { m.Counted = in.recorder.Snapshot() },
		func() { m.Prefetched = in.cluster.Prefetched() },
		func() { m.Counts = in.cluster.Counts() },
		func() { workers = in.cluster.Liveness() },
		func() { m.Journal = len(in.pending.journal) + in.pending.writingBytes },
	} {
		in.mu.RLock()
		read()
		in.mu.RUnlock()
	}
	now := in.now()
	m.Workers = workers[:0]
	for _, w := range workers {
		if !in.purges(w, now) {
			m.Workers = append(m.Workers, w)
		}
	}
	m.Counted.Sort()
	return m
}

// purges reports whether the series of a worker are to go.
func (in *Ingester) purges(w state.Liveness, now time.Time) bool {
	return in.purgeAfter > 0 && w.Status == state.Offline && now.Sub(time.UnixMicro(w.LastSeenAt)) > in.purgeAfter
}

// purgeMetrics drops the series of workers that are unknown by now, or have been offline for long. mu is held.
func (in *Ingester) purgeMetrics(now time.Time) {
	if now.Sub(in.purgedAt).Abs() < purgePause {
		return
	}
	in.purgedAt = now
	known := make(map[string]bool)
	for _, w := range in.cluster.Liveness() {
		known[w.Name] = !in.purges(w, now)
	}
	in.recorder.Forget(func(worker string) bool { return !known[worker] })
}

// observeFold counts how long after it happened the newest event was folded, by the local clock. mu is held.
func (in *Ingester) observeFold() {
	if in.newest != 0 {
		in.recorder.ObserveFold(in.now().Sub(time.UnixMicro(in.newest)))
		in.newest = 0
	}
}
