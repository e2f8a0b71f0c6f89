package ingest

import (
	"maps"
	"slices"
	"time"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/gossip"
	"github.com/umbelhq/umbel/state/loss"
)

// Health is how an Ingester is doing.
type Health struct {
	Broker  BrokerHealth
	Store   StoreHealth
	Notices []string // problems found when the history was opened, and what to do about them
	Ready   bool     // Run is running and has restored the state
	// Restoring: finished tasks that fit into memory are still being loaded. Until then they are read from the store, and not counted.
	Restoring bool
	Messages  uint64            // broker messages read
	Events    uint64            // events folded
	Rejected  map[string]uint64 // events or messages that were not usable, by cause
	Latency   time.Duration     // receipt of the newest batch → folded

	MissingStarted int64      // task-started events that workers have sent and that were not received so far, at least
	Gaps           []loss.Gap // where they are missing: the newest 200, by the time at which they were sent

	Nodes NodesHealth

	Memory MemoryHealth // within the last second

	Gossip gossip.Report // which workers hear each other, within the last seconds; not to be changed

	Watermark  state.Watermark // within the last second; it stays while there is no connection
	LateEvents uint64          // events that came after the watermark of their process had passed them
}

// moveWatermark takes the watermark of now, and reports whether readers should see it: how it moves while it is not behind
// they need not. Without a connection it stays where it is. mu is held.
func (in *Ingester) moveWatermark(connected bool) bool {
	old, m := in.watermark, in.cluster.Watermark()
	if !connected {
		m = old
		m.Behind = m.Micros != 0
	}
	in.watermark = m
	return m.Behind != old.Behind || m.Behind && m.Micros != old.Micros || (m.Micros == 0) != (old.Micros == 0) || m.Within != old.Within
}

// BrokerHealth is the state of the broker connection.
type BrokerHealth struct {
	URL           string // password masked
	Connected     bool
	Since         time.Time // when Connected last changed
	LastEventAt   time.Time // local receipt time of the newest event, zero if there was none
	LastError     string    // why it is not connected, empty if it is
	NextAttemptAt time.Time // of a connection, zero if connected
	Attempts      int       // failed ones since it was last connected
	Loss          Loss
}

// StoreHealth is the state of writing the history. Pending events are not acknowledged to the broker.
type StoreHealth struct {
	LastError     string    // of the newest write, empty if it succeeded
	FailedAt      time.Time // when the newest write failed
	Since         time.Time // of the failures, zero if the newest write succeeded
	NextAttemptAt time.Time // of the failed write, zero if none failed
	PendingEvents int       // folded and not yet on disk
	UnsavedTasks  int       // changed since they were saved; their events may be on disk
	ActiveBytes   int64     // about how much of the history active tasks take, 0 unless it exceeds its size
	Oversized     bool      // active tasks alone exceed the size of the history
	Backpressure  bool      // so much is pending that nothing more is received
}

// Rates are per second, over the last 10 full seconds, by when events were received. Series hold one value a second,
// oldest first, for the last 60 full seconds.
type Rates struct {
	Events, Received, Succeeded, Failed, Retried float64
	Series                                       Series
}

// Series are per-second counts, oldest first, all of one length.
type Series struct {
	Received, Succeeded, Failed, Retried []float64
}

// Health reports the state of the broker connection, of writing, and of the events received.
func (in *Ingester) Health() Health {
	in.mu.RLock()
	h := Health{Messages: in.messages, Events: in.events, Rejected: in.rejected(), Latency: in.latency}
	waiting, unsaved, full := in.pending.events+in.pending.writingEvents, in.cluster.Unsaved(), in.full()
	missed := in.missed.tasks
	h.MissingStarted, h.Gaps = in.lost.Missing(), in.lost.Gaps()
	h.Gossip = in.heard
	h.Watermark, h.LateEvents = in.watermark, in.cluster.LateEvents()
	h.Memory = in.memory
	in.mu.RUnlock()
	kept := in.store.Health()
	in.healthMu.Lock()
	defer in.healthMu.Unlock()
	h.Broker, h.Store, h.Ready, h.Notices = in.brokerHealth, in.storeHealth, in.ready, in.notices
	if h.Nodes = in.nodesHealth; h.Nodes.Notice != "" {
		h.Notices = append(slices.Clip(h.Notices), h.Nodes.Notice)
	}
	h.Restoring = h.Ready && in.restoring.Load()
	h.Store.ActiveBytes, h.Store.Oversized = kept.ActiveBytes, kept.OverMaxSize
	h.Broker.Loss = in.outages.loss()
	h.Broker.Loss.MissedTasks = missed
	h.Store.PendingEvents, h.Store.UnsavedTasks, h.Store.Backpressure = waiting, unsaved, full
	return h
}

// Causes of Health.Rejected beside those of package celery.
const (
	CauseSymbols = "too_many_names"  // a new task, node or state name beyond the bound, shown as (other)
	CauseEvents  = "too_many_events" // a task with more events than are kept of one
)

func (in *Ingester) rejected() map[string]uint64 {
	causes := maps.Clone(in.decoder.Rejected())
	if causes == nil {
		causes = make(map[string]uint64)
	}
	symbols, events := in.cluster.Capped()
	if symbols > 0 {
		causes[CauseSymbols] = symbols
	}
	if events > 0 {
		causes[CauseEvents] = events
	}
	return causes
}
