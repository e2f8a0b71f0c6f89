// Package ingest owns the state of a cluster: it receives events from a broker, folds them, keeps them in
// a store, and lets any number of readers see the newest picture and what came before. It serves no page and
// knows no broker and no database by name.
package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
)

// DefaultMaxTasks is how many finished tasks are held in memory where nothing else is said.
const DefaultMaxTasks = 200_000

// Options of an Ingester. Broker and Store are required.
type Options struct {
	Broker       broker.Broker
	Store        history.Store // who opened it closes it, after Run has returned
	State        state.Options
	EnableEvents bool // broadcast enable_events after connecting, for workers started without -E
	// Broadcast sends a control command to every worker and wants no reply. It may wait for a connection until
	// ctx ends. Nil means that workers are asked nothing.
	Broadcast func(ctx context.Context, method string) error
	Logger    *slog.Logger     // nil discards
	Now       func() time.Time // nil means time.Now
}

// Ingester watches one Celery cluster. It is safe for concurrent use.
type Ingester struct {
	broker       broker.Broker
	store        history.Store
	maxTasks     int
	maxWaiting   int      // bytes of journal beyond which no more is received
	notices      []string // of the store
	enableEvents bool
	broadcast    func(ctx context.Context, method string) error
	log          *slog.Logger
	now          func() time.Time

	// mu guards the picture: Run's receiver and writer change it, readers share it.
	mu            sync.RWMutex
	cluster       *state.Cluster
	clock         hostClock
	restored      bool         // the cluster holds what the last monitor left
	pending       pendingBatch // what is folded and not on disk
	decoder       celery.Decoder
	rates         meter
	minutes       rollup.Recorder
	discovery     discovery
	queueCounters queueCounters
	changed       chan struct{}
	messages      uint64
	events        uint64
	latency       time.Duration
	missed        missedEstimate

	review     state.Reconciliation // of the newest look at unfinished tasks,
	reconciled time.Time            // and when it was

	writer writer
	counts countCache

	// linkMu guards what Health says of the broker and of writing.
	healthMu     sync.Mutex
	brokerHealth BrokerHealth
	outages      outages
	storeHealth  StoreHealth
	ready        bool
}

// New validates o and starts nothing.
func New(o Options) (*Ingester, error) {
	if o.Broker == nil {
		return nil, errors.New("monitor needs a broker")
	}
	if o.Store == nil {
		return nil, errors.New("monitor needs a store")
	}
	if o.State.MaxTasks < 0 {
		return nil, errors.New("the number of tasks to keep is negative")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.State.MaxTasks, o.State.Track = cmp.Or(o.State.MaxTasks, DefaultMaxTasks), true
	m := &Ingester{
		broker: o.Broker, store: o.Store, maxTasks: o.State.MaxTasks, maxWaiting: maxWaiting, notices: o.Store.Health().Notices, enableEvents: o.EnableEvents, broadcast: o.Broadcast,
		log: o.Logger, now: o.Now, clock: newHostClock(o.Now),
		cluster: state.New(o.State), changed: make(chan struct{}), discovery: discovery{wake: make(chan struct{}, 1)},
		brokerHealth: BrokerHealth{URL: o.Broker.String(), Since: o.Now()}, outages: newOutages(o.Broker),
	}
	m.writer = newWriter(m)
	return m, nil
}

// Run restores what the last monitor left in the store, then connects, receives, folds and writes until ctx
// ends. It returns nil after an orderly stop, with all that was folded written, unless that takes longer than
// 10 s. A lost broker and a failed write are no errors: they are tried again for ever.
func (m *Ingester) Run(ctx context.Context) error {
	if err := m.restore(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // asked to stop
		}
		return fmt.Errorf("restore history: %w", err)
	}
	m.setReady(true)
	defer m.setReady(false)
	g, ctx := errgroup.WithContext(ctx)
	drained := make(chan struct{}) // closed when nothing more is folded
	g.Go(func() error {
		defer close(drained)
		return m.supervise(ctx)
	})
	g.Go(func() error { return m.tick(ctx) })
	g.Go(func() error { return m.maintain(ctx) })
	writing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g.Go(func() error {
		defer cancel()
		m.writer.run(writing, ctx.Done(), drained)
		return nil
	})
	g.Go(func() error { // gives up writing what does not end
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

// maintain has the store keep itself in order. Where that fails it begins again: history is kept without it.
func (m *Ingester) maintain(ctx context.Context) error {
	for {
		err := m.store.Run(ctx, m.forget)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		m.log.Error("history not maintained", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(maxRetry):
		}
	}
}

// forget drops tasks that the store has removed.
func (m *Ingester) forget(ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cluster.Forget(ids)
	m.notify()
}

func (m *Ingester) setReady(ready bool) {
	m.healthMu.Lock()
	m.ready = ready
	m.healthMu.Unlock()
	m.wake()
}

// fold takes in a batch of a session under one write lock. An event of a task that may be in the store only waits, and
// with it all that follow, until what the store has is back in memory: only so can it be told whether it is new.
func (m *Ingester) fold(ctx context.Context, session broker.EventStream, batch []broker.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	start := m.time()
	m.rates.advance(m.clock.elapsed())
	var waiting []state.Event
	for i := range batch {
		m.messages++
		body, ok := m.decoder.JSON(batch[i].ContentType, batch[i].Body)
		if !ok {
			continue
		}
		m.decoder.Decode(body, start.UnixMicro(), func(e *state.Event) {
			if len(waiting) > 0 || m.cluster.NeedsLoad(e) {
				waiting = append(waiting, *e)
				return
			}
			m.apply(e)
		})
	}
	if len(waiting) > 0 {
		m.recall(ctx, waiting)
		for i := range waiting {
			m.apply(&waiting[i])
		}
	}
	m.pending.received(session, batch[len(batch)-1].Tag, len(batch))
	m.writer.wake(m.writeDue())
	m.latency = m.now().Sub(start)
	m.notify()
}

// take folds one event in, and counts what it did. mu is held.
func (m *Ingester) apply(e *state.Event) {
	m.events++
	m.discovery.add(e)
	m.missed.add(e)
	ch := m.cluster.Apply(e)
	m.rates.add(e, ch)
	m.minutes.Add(e, ch)
	m.queueCounters.add(e, ch)
	m.pending.add(e, ch)
}

// notify wakes everybody who waits for a change. mu is held.
func (m *Ingester) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// tick lets workers grow late and rates fall while nothing arrives.
func (m *Ingester) tick(ctx context.Context) error {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			m.expire()
		}
	}
}

func (m *Ingester) expire() {
	m.healthMu.Lock()
	connected, since := m.brokerHealth.Connected, m.brokerHealth.Since
	m.healthMu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.time()
	m.rates.advance(m.clock.elapsed())
	m.forgetWorkers(now)
	if connected {
		m.minutes.MarkObserved(now)
	}
	concluded := connected && m.reconcile(now, since)
	if m.cluster.Expire(now.UnixMicro()) || m.rates.moving() || concluded {
		m.notify()
	}
}

// forgetWorkers drops the workers that were silent for as long as the store keeps them. mu is held.
func (m *Ingester) forgetWorkers(now time.Time) {
	keep := m.store.RetentionRules().Workers
	if keep == 0 || !m.restored {
		return
	}
	if n := m.cluster.ForgetWorkers(now.Add(-keep).UnixMicro()); n > 0 {
		m.log.Info("forgot workers", "workers", n)
		m.notify()
	}
}

// ForgetWorker drops a worker that is offline and has no unfinished task, from the history too, and reports whether it
// has. Its next event brings it back.
func (m *Ingester) ForgetWorker(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.restored || !m.cluster.ForgetWorker(name) {
		return false
	}
	m.notify()
	return true
}

// View calls f with the cluster under a read lock. f copies what it needs and must not block, keep
// the cluster, or call the monitor.
func (m *Ingester) View(f func(c *state.Cluster)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f(m.cluster)
}

// Changed returns a channel that is closed at the next change. Take it before you View, or a change
// between the two goes unseen.
func (m *Ingester) Changed() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.changed
}

// Health says how the monitor is doing.
func (m *Ingester) Health() Health {
	m.mu.RLock()
	h := Health{Messages: m.messages, Events: m.events, Rejected: m.rejected(), Latency: m.latency}
	waiting, unsaved, full := m.pending.events+m.pending.writingEvents, m.cluster.Unsaved(), m.full()
	unseen := m.missed.tasks
	m.mu.RUnlock()
	kept := m.store.Health()
	m.healthMu.Lock()
	defer m.healthMu.Unlock()
	h.Broker, h.Store, h.Ready, h.Notices = m.brokerHealth, m.storeHealth, m.ready, m.notices
	h.Store.Active, h.Store.Oversized = kept.ActiveBytes, kept.OverMaxSize
	h.Broker.Loss = m.outages.loss()
	h.Broker.Loss.MissedTasks = unseen
	h.Store.Waiting, h.Store.Unsaved, h.Store.Full = waiting, unsaved, full
	return h
}

// Causes of Health.Rejected beside those of package celery.
const (
	CauseSymbols = "too_many_names"  // a new task, node or state name beyond the bound, shown as (other)
	CauseEvents  = "too_many_events" // a task that sent more events than are kept of one
)

func (m *Ingester) rejected() map[string]uint64 {
	causes := maps.Clone(m.decoder.Rejected())
	if causes == nil {
		causes = make(map[string]uint64)
	}
	symbols, events := m.cluster.Capped()
	if symbols > 0 {
		causes[CauseSymbols] = symbols
	}
	if events > 0 {
		causes[CauseEvents] = events
	}
	return causes
}

// Rates returns what happened in the last minute.
func (m *Ingester) Rates() Rates {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.rates.read(m.clock.elapsed())
}
