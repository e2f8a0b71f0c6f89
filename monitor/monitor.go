// Package monitor owns the state of a cluster: it receives events from a broker, folds them, and
// lets any number of readers see the newest picture. It serves no page and knows no broker by name.
package monitor

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/transport"
	"github.com/umbelhq/umbel/state"
)

// Options of a Monitor. Broker is required.
type Options struct {
	Broker       transport.Broker
	State        state.Options
	EnableEvents bool             // broadcast enable_events after connecting, for workers started without -E
	Logger       *slog.Logger     // nil discards
	Now          func() time.Time // nil means time.Now
}

// Monitor watches one Celery cluster. It is safe for concurrent use.
type Monitor struct {
	broker       transport.Broker
	enableEvents bool
	log          *slog.Logger
	now          func() time.Time

	// mu guards the picture: Run's receiver writes it, readers share it.
	mu       sync.RWMutex
	cluster  *state.Cluster
	decoder  celery.Decoder
	rates    meter
	arrivals arrivals
	changed  chan struct{}
	messages uint64
	events   uint64
	latency  time.Duration

	// linkMu guards what Health says of the broker.
	linkMu sync.Mutex
	link   BrokerHealth
	ready  bool
}

// New validates o and starts nothing.
func New(o Options) (*Monitor, error) {
	if o.Broker == nil {
		return nil, errors.New("monitor needs a broker")
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
	return &Monitor{
		broker: o.Broker, enableEvents: o.EnableEvents, log: o.Logger, now: o.Now,
		cluster: state.New(o.State), changed: make(chan struct{}), arrivals: arrivals{wake: make(chan struct{}, 1)},
		link: BrokerHealth{URL: o.Broker.String(), Since: o.Now()},
	}, nil
}

// Run connects, receives and folds until ctx ends. It returns nil after an orderly stop. A lost broker is
// not an error: it is redialled for ever.
func (m *Monitor) Run(ctx context.Context) error {
	m.setReady(true)
	defer m.setReady(false)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return m.supervise(ctx) })
	g.Go(func() error { return m.tick(ctx) })
	if err := g.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (m *Monitor) setReady(ready bool) {
	m.linkMu.Lock()
	defer m.linkMu.Unlock()
	m.ready = ready
}

// fold takes in a batch under one write lock.
func (m *Monitor) fold(batch []transport.Message) {
	start := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rates.advance(start)
	for i := range batch {
		m.messages++
		if !m.decoder.Accepts(batch[i].ContentType) {
			continue
		}
		m.decoder.Decode(batch[i].Body, start.UnixMicro(), func(e *state.Event) {
			m.events++
			m.rates.add(e)
			m.arrivals.add(e)
			m.cluster.Apply(e)
		})
	}
	m.latency = m.now().Sub(start)
	m.notify()
}

// notify wakes everybody who waits for a change. mu is held.
func (m *Monitor) notify() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// tick lets workers grow late and rates fall while nothing arrives.
func (m *Monitor) tick(ctx context.Context) error {
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

func (m *Monitor) expire() {
	now := m.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rates.advance(now)
	if m.cluster.Expire(now.UnixMicro()) || m.rates.moving() {
		m.notify()
	}
}

// View calls f with the cluster under a read lock. f copies what it needs and must not block, keep
// the cluster, or call the monitor.
func (m *Monitor) View(f func(c *state.Cluster)) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f(m.cluster)
}

// Changed returns a channel that is closed at the next change. Take it before you View, or a change
// between the two goes unseen.
func (m *Monitor) Changed() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.changed
}

// Health says how the monitor is doing.
func (m *Monitor) Health() Health {
	m.mu.RLock()
	h := Health{Messages: m.messages, Events: m.events, Rejected: m.rejected(), Latency: m.latency}
	m.mu.RUnlock()
	m.linkMu.Lock()
	defer m.linkMu.Unlock()
	h.Broker, h.Ready = m.link, m.ready
	return h
}

// Causes of Health.Rejected beside those of package celery.
const (
	CauseSymbols = "too_many_names"  // a new task, node or state name beyond the bound, shown as (other)
	CauseEvents  = "too_many_events" // a task that sent more events than are kept of one
)

func (m *Monitor) rejected() map[string]uint64 {
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
func (m *Monitor) Rates() Rates {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.rates.read(m.now())
}
