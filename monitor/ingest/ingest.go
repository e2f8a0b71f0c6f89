// Package ingest receives the events of a cluster, folds them into its state, writes them to the history, and acknowledges
// them. It is the only writer of that state; package view reads it. It knows no broker and no database by name.
package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/metrics"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/gossip"
	"github.com/umbelhq/umbel/state/loss"
)

// DefaultMaxTasks is how many finished tasks are held in memory by default.
const DefaultMaxTasks = 200_000

// Store is where an Ingester writes the history, and from which it restores.
type Store interface {
	history.Writer
	// Task returns the saved events of a task, or history.ErrNotFound.
	Task(ctx context.Context, id string) ([]byte, error)
	RetentionRules() history.RetentionRules
	// Run maintains the store until ctx ends and reports the ids of the tasks that it removes.
	Run(ctx context.Context, removed func(ids []string)) error
	Health() history.Health
}

// Broadcaster sends a control command to every worker without asking for replies. It waits for a connection until ctx
// ends.
type Broadcaster interface {
	Broadcast(ctx context.Context, method string) error
}

// Leader decides whether this process asks the workers on behalf of all that watch them. It is safe for concurrent use.
type Leader interface {
	// Leads reports whether this process asks.
	Leads() bool
	// Changed returns a channel that is closed when that may have changed.
	Changed() <-chan struct{}
}

// Options of an Ingester. Broker and Store are required.
type Options struct {
	Broker       broker.Broker
	Store        Store  // whoever opened it closes it, after Run has returned
	Shared       Shared // the Store, if other processes have it open too; nil if none does
	State        state.Options
	EnableEvents bool        // broadcast enable_events after connecting, for workers started without -E
	Control      Broadcaster // nil asks workers nothing
	Leader       Leader      // nil: this process always leads
	Metrics      MetricsOptions
	Redactor     *redact.Redactor // takes secrets out of events before anything else sees them; nil leaves them as they are
	// Ended is told of each attempt at a task that ends, with the timestamp of the event, µs. It must not block or keep its
	// strings. It may be nil.
	Ended  func(task, worker string, micros int64)
	Logger *slog.Logger     // nil discards
	Now    func() time.Time // nil means time.Now
}

// Ingester holds the state of one Celery cluster. It is safe for concurrent use.
type Ingester struct {
	options      Options
	broker       broker.Broker
	store        Store
	shared       Shared // nil: this process leads
	maxTasks     int
	restoreFirst int
	maxWaiting   int      // bytes of journal beyond which no more is received
	notices      []string // of the store
	enableEvents bool
	control      Broadcaster
	leader       Leader
	redactor     *redact.Redactor
	ended        func(task, worker string, micros int64) // may be nil
	log          *slog.Logger
	now          func() time.Time

	restored  atomic.Bool     // the cluster holds what the last process left, or the store does
	leads     atomic.Bool     // this process writes the history
	restoring atomic.Bool     // older tasks of the store are still to be loaded
	omitted   *state.Position // of the newest of them, nil if there are none

	// mu guards what follows: Run's receiver and writer change it, readers share it.
	mu            sync.RWMutex
	cluster       *state.Cluster
	clock         hostClock
	pending       pendingBatch  // events folded and not yet on disk
	deferred      []state.Event // received and not folded: their tasks cannot be read at present
	decoder       celery.Decoder
	serializer    celery.Serializer // of the last message
	rates         meter
	rollups       rollup.Recorder
	discovery     discovery
	queueCounters queueCounters
	receipts      receipts
	recorder      *metrics.Recorder
	purgeAfter    time.Duration // after which recorder drops the series of an offline worker, 0 as long as it is known
	purgedAt      time.Time
	changed       chan struct{}
	messages      uint64
	events        uint64
	latency       time.Duration
	missed        missedEstimate
	lost          loss.Detector
	gossip        gossip.Detector
	heard         gossip.Report // of the last gossipEvery
	heardAt       time.Time
	watermark     state.Watermark // as of the last tick
	receipt       int64           // of the last event, µs
	newest        int64           // timestamp of the newest event of this batch by the local clock, µs, 0 if it has none

	reconciliation state.Reconciliation // the newest one
	reconciled     time.Time            // when it was made

	guard  memoryGuard
	memory MemoryHealth

	folding sync.Mutex // held while events are folded, and while a takeover folds what it keeps

	writer   writer
	follower follower      // nil store if this process always leads
	asked    chan struct{} // holds one element when another node may have asked for something

	// healthMu guards the health of the broker connection and of writing.
	healthMu     sync.Mutex
	brokerHealth BrokerHealth
	outages      outages
	storeHealth  StoreHealth
	nodesHealth  NodesHealth
	ready        bool
}

// New validates o and starts nothing.
func New(o Options) (*Ingester, error) {
	if o.Broker == nil {
		return nil, errors.New("ingest needs a broker")
	}
	if o.Store == nil {
		return nil, errors.New("ingest needs a store")
	}
	if o.State.MaxTasks < 0 {
		return nil, errors.New("the number of tasks to keep is negative")
	}
	if err := metrics.CheckBuckets(o.Metrics.RuntimeBuckets); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Leader == nil {
		o.Leader = alone{}
	}
	o.State.MaxTasks, o.State.Track = cmp.Or(o.State.MaxTasks, DefaultMaxTasks), true
	in := &Ingester{
		options: o, broker: o.Broker, store: o.Store, shared: o.Shared, maxTasks: o.State.MaxTasks, restoreFirst: restoreFirst, maxWaiting: maxWaiting,
		notices: o.Store.Health().Notices, enableEvents: o.EnableEvents, control: o.Control, leader: o.Leader, redactor: o.Redactor, ended: o.Ended,
		log: o.Logger, now: o.Now, clock: newHostClock(o.Now),
		cluster: state.New(o.State), changed: make(chan struct{}), asked: make(chan struct{}, 1), discovery: discovery{wake: make(chan struct{}, 1)},
		recorder: metrics.New(metrics.Options{RuntimeBuckets: o.Metrics.RuntimeBuckets}), purgeAfter: o.Metrics.PurgeOfflineWorkers,
		brokerHealth: BrokerHealth{URL: o.Broker.String(), Since: o.Now()}, outages: newOutages(o.Broker),
	}
	in.writer, in.follower = newWriter(in), newFollower(in)
	in.guard.usage = readMemory
	in.guard.tasks, in.guard.text = in.cluster.Limits()
	in.guardMemory()
	return in, nil
}

// Run restores the state from the store, then connects, receives, folds and writes until ctx ends. It returns nil after an
// orderly stop, once everything folded is written or 10 s have passed. A lost broker and a failed write are not errors: Run
// retries both forever.
func (in *Ingester) Run(ctx context.Context) error {
	if err := in.begin(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // asked to stop
		}
		return fmt.Errorf("restore history: %w", err)
	}
	in.setReady(true)
	defer in.setReady(false)
	g, ctx := errgroup.WithContext(ctx)
	drained := make(chan struct{}) // closed when nothing more is folded
	g.Go(func() error {
		defer close(drained)
		return in.supervise(ctx)
	})
	g.Go(func() error { return in.tick(ctx) })
	g.Go(func() error { return in.report(ctx) })
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g.Go(func() error {
		defer cancel()
		defer close(in.writer.stopped)
		in.write(ctx, writing, drained)
		return nil
	})
	g.Go(func() error { // bounds the final write
		<-ctx.Done()
		defer cancel()
		select {
		case <-writing.Done():
		case <-time.After(finalWrite):
		}
		return nil
	})
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// maintain runs the maintenance of the store, and restarts it after an error: history is written without it.
func (in *Ingester) maintain(ctx context.Context) {
	for {
		err := in.store.Run(ctx, func(ids []string) { in.removed(ctx, ids) })
		if err == nil || ctx.Err() != nil {
			return
		}
		in.log.Error("history not maintained", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(maxRetry):
		}
	}
}

// removed forgets tasks that the store has pruned, and tells the nodes that follow.
func (in *Ingester) removed(ctx context.Context, ids []string) {
	in.forget(ids)
	if in.shared == nil || len(ids) == 0 {
		return
	}
	if err := in.shared.NoteRemoved(ctx, ids); err != nil && ctx.Err() == nil {
		in.log.Error("other nodes not told of removed tasks", "error", err)
	}
}

// forget drops tasks that the store has pruned.
func (in *Ingester) forget(ids []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cluster.Forget(ids)
	in.notify()
}

// EventSerializer returns the serializer of the message of events that was received last, empty before the first.
func (in *Ingester) EventSerializer() celery.Serializer {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.serializer
}

func (in *Ingester) setReady(ready bool) {
	in.healthMu.Lock()
	in.ready = ready
	in.healthMu.Unlock()
	in.Notify()
}

// fold applies a batch of a stream under one write lock. If an event is of a task that only the store may have, it and all
// that follow wait until that task is loaded: only then is it known whether the event is new. While the store cannot be read, those of
// such tasks wait alone, and what came with them is not acknowledged.
func (in *Ingester) fold(ctx context.Context, stream broker.EventStream, batch []broker.Message) {
	in.folding.Lock()
	defer in.folding.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	start := in.time()
	in.rates.advance(in.clock.elapsed())
	var waiting []state.Event
	for i := range batch {
		in.messages++
		body, ok := in.decoder.JSON(batch[i].ContentType, batch[i].Body)
		if !ok {
			continue
		}
		in.serializer, _ = celery.SerializerOf(batch[i].ContentType)
		in.decoder.Decode(body, start.UnixMicro(), func(e *state.Event) {
			if len(waiting) > 0 || in.cluster.NeedsLoad(e) {
				waiting = append(waiting, *e)
				return
			}
			in.apply(e)
		})
	}
	if len(waiting) > 0 {
		in.applyStored(ctx, waiting, in.apply)
	}
	in.pending.received(stream, batch[len(batch)-1].Tag, len(batch), start)
	in.writer.wake(in.writeDue())
	in.latency = in.now().Sub(start)
	in.observeFold()
	in.notify()
}

// setReceipt gives an event a receipt of its own: the time of its batch or, if an event has that, the next µs, so that
// receipts order events. A wall clock that was set back begins anew.
func (in *Ingester) setReceipt(e *state.Event) {
	if ahead := in.receipt - e.ReceivedMicros; ahead >= 0 && ahead < 1e6 {
		e.ReceivedMicros = in.receipt + 1
	}
	in.receipt = e.ReceivedMicros
}

// apply folds one event and counts what it changed. mu is held.
func (in *Ingester) apply(e *state.Event) {
	in.events++
	in.setReceipt(e)
	name := ""
	if in.redactor.NeedsNames() && e.Kind.Task() && e.Name == "" {
		name = in.cluster.TaskName(e.ID)
	}
	in.redactor.Event(e, name)
	in.discovery.add(e)
	in.missed.add(e)
	ch := in.cluster.Apply(e)
	in.lost.Add(e, ch)
	if ch.New {
		in.gossip.Add(e)
	}
	in.rates.add(e, ch)
	in.rollups.Add(e, ch)
	in.queueCounters.add(e, ch)
	in.receipts.add(e, ch)
	in.recorder.Add(e, &ch)
	in.newest = e.Micros - ch.OffsetMicros
	in.pending.add(e, ch)
	if in.ended != nil && ch.New && ends(e.Kind) {
		in.ended(e.ID, e.Hostname, e.Micros)
	}
}

// ends reports whether an event of this kind ends an attempt at a task.
func ends(k state.Kind) bool {
	switch k {
	case state.TaskSucceeded, state.TaskFailed, state.TaskRetried, state.TaskRevoked, state.TaskRejected:
		return true
	default:
		return false
	}
}

// notify wakes those who wait on Changed. mu is held.
func (in *Ingester) notify() {
	close(in.changed)
	in.changed = make(chan struct{})
}

// tick updates what changes with time alone: the status of workers without events, and rates.
func (in *Ingester) tick(ctx context.Context) error {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			in.expire()
		}
	}
}

func (in *Ingester) expire() {
	in.healthMu.Lock()
	connected, since := in.brokerHealth.Connected, in.brokerHealth.Since
	in.healthMu.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.time()
	in.rates.advance(in.clock.elapsed())
	in.guardMemory()
	in.forgetWorkers(now)
	in.purgeMetrics(now)
	in.listen(now)
	if connected {
		in.rollups.MarkObserved(now)
	} else {
		in.receipts.broken = true
	}
	concluded := connected && in.leads.Load() && in.reconcile(now, since)
	expired := in.cluster.Expire(now.UnixMicro())
	if moved := in.moveWatermark(connected); moved || expired || in.rates.active() || concluded {
		in.notify()
	}
}

// forgetWorkers drops the workers whose retention has ended. mu is held.
func (in *Ingester) forgetWorkers(now time.Time) {
	keep := in.store.RetentionRules().Workers
	if keep == 0 || !in.restored.Load() {
		return
	}
	if n := in.cluster.ForgetWorkers(now.Add(-keep).UnixMicro()); n > 0 {
		in.log.Info("forgot workers", "workers", n)
		in.notify()
	}
}

// ForgetWorker removes an offline worker without unfinished tasks from memory and history, and reports whether it did. The
// worker's next event adds it again.
func (in *Ingester) ForgetWorker(name string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.restored.Load() || !in.cluster.ForgetWorker(name) {
		return false
	}
	in.lost.Forget(name)
	in.gossip.Forget(name)
	in.notify()
	return true
}

// ReportWorkers records what workers have reported of their pools and queues, by name.
func (in *Ingester) ReportWorkers(reports map[string]state.LastReport) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for name, r := range reports {
		in.cluster.ReportWorker(name, r)
	}
}

// View calls f with the cluster under a read lock. f copies what it needs; it must not block or retain the View,
// or call the Ingester.
func (in *Ingester) View(f func(c state.View)) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	f(in.cluster)
}

// Changed returns a channel that is closed at the next change. Take it before View, or a change between the two goes
// unseen.
func (in *Ingester) Changed() <-chan struct{} {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.changed
}

// Restored reports whether the state of the last process has been restored.
func (in *Ingester) Restored() bool { return in.restored.Load() }

// Rates returns the rates of the last minute.
func (in *Ingester) Rates() Rates {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.rates.read(in.clock.elapsed())
}
