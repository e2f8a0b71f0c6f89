package ingest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/umbelhq/umbel/internal/retry"
	"github.com/umbelhq/umbel/monitor/broker"
)

// Bounds of the wait before reconnecting.
const (
	minRedial = 500 * time.Millisecond
	maxRedial = 30 * time.Second
)

// supervise keeps a stream of events open until ctx ends.
func (in *Ingester) supervise(ctx context.Context) error {
	failures := 0
	for ctx.Err() == nil {
		stream, err := in.broker.Subscribe(ctx)
		if err == nil {
			failures = 0
			in.connected(stream)
			err = in.runStream(ctx, stream)
		}
		if ctx.Err() != nil {
			break
		}
		failures++
		wait := retry.After(failures, minRedial, maxRedial)
		in.disconnected(err, failures, wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return ctx.Err()
}

// runStream broadcasts requests for events and folds what the stream delivers until it ends. A broker that accepts no
// commands for now, such as one low on memory, still delivers.
func (in *Ingester) runStream(ctx context.Context, stream broker.EventStream) error {
	requesting, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { in.requestEvents(requesting) })
	err := in.receive(ctx, stream)
	cancel()
	wg.Wait()
	if ctx.Err() != nil {
		in.writer.waitAcked()
	}
	if e := stream.Close(); e != nil {
		in.log.Debug("session did not close cleanly", "error", e)
	}
	return err
}

// alone leads always.
type alone struct{}

func (alone) Leads() bool              { return true }
func (alone) Changed() <-chan struct{} { return nil }

// requestEvents asks the workers for a heartbeat and, if enabled and while this process leads, all workers and later new ones for
// task events.
func (in *Ingester) requestEvents(ctx context.Context) {
	if in.control == nil {
		return
	}
	in.send(ctx, "heartbeat")
	if !in.enableEvents {
		return
	}
	for due := true; ; {
		changed := in.leader.Changed()
		leads := in.leader.Leads()
		if due && leads {
			in.send(ctx, "enable_events")
		}
		due = !leads // a new leader asks at once
		select {
		case <-ctx.Done():
			return
		case <-changed:
			continue
		case <-in.discovery.wake:
			due = true
		}
		select { // for other new processes
		case <-ctx.Done():
			return
		case <-time.After(discoveryPause):
		}
	}
}

func (in *Ingester) send(ctx context.Context, method string) {
	if err := in.control.Broadcast(ctx, method); err != nil && ctx.Err() == nil {
		in.log.Warn("control command not sent", "method", method, "error", err)
	}
}

// receive folds batches until the stream ends, and receives nothing while too much is pending: the broker holds it. The
// writer acknowledges the batches.
func (in *Ingester) receive(ctx context.Context, stream broker.EventStream) error {
	for {
		if err := in.writer.waitForCapacity(ctx, stream); err != nil {
			return err
		}
		batch, err := stream.Receive(ctx)
		if err != nil {
			return fmt.Errorf("receive events: %w", err)
		}
		in.fold(ctx, stream, batch)
		in.healthMu.Lock()
		in.brokerHealth.LastEventAt = in.now()
		in.healthMu.Unlock()
	}
}

// connected records a new stream.
func (in *Ingester) connected(stream broker.EventStream) {
	now := in.now()
	in.healthMu.Lock()
	in.outages.end(now, stream)
	in.brokerHealth.Connected, in.brokerHealth.Since = true, now
	in.brokerHealth.LastError, in.brokerHealth.NextAttemptAt, in.brokerHealth.Attempts = "", time.Time{}, 0
	in.healthMu.Unlock()
	in.log.Info("broker connected", "url", in.broker.String())
	in.Notify()
}

// disconnected records a lost stream or a failed attempt, and when the next one is.
func (in *Ingester) disconnected(cause error, failures int, wait time.Duration) {
	now := in.now()
	in.healthMu.Lock()
	broken := in.brokerHealth.Connected
	if broken {
		in.brokerHealth.Connected, in.brokerHealth.Since = false, now
		in.outages.begin(now)
	}
	in.brokerHealth.LastError, in.brokerHealth.NextAttemptAt, in.brokerHealth.Attempts = cause.Error(), now.Add(wait), failures
	in.healthMu.Unlock()
	in.log.Warn("broker not connected", "url", in.broker.String(), "error", cause, "retry_in_ms", wait.Milliseconds())
	in.mu.Lock()
	defer in.mu.Unlock()
	if broken && in.outages.ephemeral { // which never changes
		in.missed.begin(in.cluster.Workers())
	}
	in.notify()
}

// Notify wakes those who wait on Changed, after a change that no event reports.
func (in *Ingester) Notify() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.notify()
}
