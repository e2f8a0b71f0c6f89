package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// Bounds of the wait before the broker is dialled again.
const (
	minRedial = 500 * time.Millisecond
	maxRedial = 30 * time.Second
)

// redialAfter is the wait after a number of failed tries: full jitter over a doubling bound, so that
// many monitors do not come back to a broker at the same moment.
func redialAfter(failures int) time.Duration {
	bound := maxRedial
	if failures < 6 {
		bound = min(minRedial<<failures, maxRedial)
	}
	return minRedial + rand.N(bound)
}

// supervise keeps a session with the broker until ctx ends.
func (m *Ingester) supervise(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		session, err := m.broker.Subscribe(ctx)
		if err == nil {
			failures = 0
			m.connected(session)
			err = m.runSession(ctx, session)
		}
		if ctx.Err() != nil {
			break
		}
		wait := redialAfter(failures)
		failures++
		m.disconnected(err, failures, wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return ctx.Err()
}

// attend greets the workers and folds what the session delivers until it ends. A broker that takes no
// commands for now, such as one low on memory, still delivers.
func (m *Ingester) runSession(ctx context.Context, session broker.EventStream) error {
	greeting, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { m.requestEvents(greeting) })
	err := m.receive(ctx, session)
	cancel()
	wg.Wait()
	if ctx.Err() != nil {
		m.writer.waitAcked()
	}
	if e := session.Close(); e != nil {
		m.log.Debug("session did not close cleanly", "error", e)
	}
	return err
}

// greet asks the workers to make themselves known, and those that come later to send task events.
func (m *Ingester) requestEvents(ctx context.Context) {
	if m.broadcast == nil {
		return
	}
	m.send(ctx, "heartbeat")
	if !m.enableEvents {
		return
	}
	for {
		m.send(ctx, "enable_events")
		select {
		case <-ctx.Done():
			return
		case <-m.discovery.wake:
		}
		select { // let others arrive too
		case <-ctx.Done():
			return
		case <-time.After(discoveryPause):
		}
	}
}

func (m *Ingester) send(ctx context.Context, method string) {
	if err := m.broadcast(ctx, method); err != nil && ctx.Err() == nil {
		m.log.Warn("control command not sent", "method", method, "error", err)
	}
}

// receive folds batches until the session ends, and takes no more while too much waits to be written: the
// broker holds it. The writer acknowledges them.
func (m *Ingester) receive(ctx context.Context, session broker.EventStream) error {
	for {
		if err := m.writer.waitForCapacity(ctx, session); err != nil {
			return err
		}
		batch, err := session.Receive(ctx)
		if err != nil {
			return fmt.Errorf("receive events: %w", err)
		}
		m.fold(ctx, session, batch)
		m.healthMu.Lock()
		m.brokerHealth.LastEventAt = m.now()
		m.healthMu.Unlock()
	}
}

// connected notes a new session.
func (m *Ingester) connected(session broker.EventStream) {
	now := m.now()
	m.healthMu.Lock()
	m.outages.end(now, session)
	m.brokerHealth.Connected, m.brokerHealth.Since = true, now
	m.brokerHealth.LastError, m.brokerHealth.NextTryAt, m.brokerHealth.Attempts = "", time.Time{}, 0
	m.healthMu.Unlock()
	m.log.Info("broker connected", "url", m.broker.String())
	m.wake()
}

// disconnected notes a lost session or a failed try, and when the next one is.
func (m *Ingester) disconnected(cause error, failures int, wait time.Duration) {
	now := m.now()
	m.healthMu.Lock()
	broken := m.brokerHealth.Connected
	if broken {
		m.brokerHealth.Connected, m.brokerHealth.Since = false, now
		m.outages.begin(now)
	}
	m.brokerHealth.LastError, m.brokerHealth.NextTryAt, m.brokerHealth.Attempts = cause.Error(), now.Add(wait), failures
	m.healthMu.Unlock()
	m.log.Warn("broker not connected", "url", m.broker.String(), "error", cause, "retry_in_ms", wait.Milliseconds())
	m.mu.Lock()
	defer m.mu.Unlock()
	if broken && m.outages.forgets { // which never changes
		m.missed.begin(m.cluster.Workers())
	}
	m.notify()
}

// wake tells readers that Health has changed.
func (m *Ingester) wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notify()
}
