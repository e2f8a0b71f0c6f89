package redis

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
)

// eventStream subscribes to the channels of events. Redis does not store messages for absent subscribers.
type eventStream struct {
	broker *Broker
	conn   *conn
	in     *respReader
	inbox  *inbox
	stop   context.CancelFunc // of what runs beside Receive
	wg     sync.WaitGroup

	mu       sync.Mutex // guards received
	received uint64     // tag of the last message that Receive returned
}

// openStream starts an event stream once Redis has confirmed its subscriptions.
func (b *Broker) openStream(ctx context.Context, l *conn) (broker.EventStream, error) {
	in, err := newRESPReader(ctx, l, 2*b.options.HealthCheck)
	if err != nil {
		return nil, err
	}
	if err := in.subscribe(l.keys.patterns()); err != nil {
		return nil, err
	}
	l.seal()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &eventStream{broker: b, conn: l, in: in, inbox: newInbox(), stop: stop}
	s.wg.Go(s.read)
	s.wg.Go(func() { s.keep(running) })
	return s, nil
}

// subscribe returns once Redis has confirmed it.
func (p *respReader) subscribe(patterns []string) error {
	if err := p.send(append([]string{"PSUBSCRIBE"}, patterns...)...); err != nil {
		return err
	}
	for n := 0; n < len(patterns); {
		kind, _, _, err := p.next()
		if err != nil {
			return err
		}
		if kind == kindSubscribed {
			n++
		}
	}
	return nil
}

// read passes messages on as fast as they come, until the connection ends.
func (s *eventStream) read() {
	batch := make([]broker.Message, 0, broker.MaxBatch)
	var opener celery.EnvelopeParser
	for {
		kind, payload, fits, err := s.in.next()
		switch {
		case err != nil:
			s.inbox.put(batch)
			s.inbox.end(lost(err), false)
			return
		case kind != kindMessage:
		case fits:
			batch = append(batch, message(&opener, payload))
		default:
			s.inbox.drop()
		}
		if len(batch) == cap(batch) || len(batch) > 0 && !s.in.waiting() {
			s.inbox.put(batch)
			batch = batch[:0]
		}
	}
}

// message decodes a payload. A payload that is not an envelope is returned as a body, which the decoder of events
// counts.
func message(o *celery.EnvelopeParser, payload []byte) broker.Message {
	m, err := o.Parse(payload)
	if err != nil {
		return broker.Message{Body: bytes.Clone(payload)}
	}
	return m
}

// keep ends the stream when its connection is lost.
func (s *eventStream) keep(ctx context.Context) {
	if err := s.broker.ping(ctx, s.in, s.conn.endpoint); err != nil {
		s.inbox.end(lost(err), false)
	}
}

// ping pings a subscription until ctx ends, so that a dead connection is noticed, and with sentinels watches for another
// master. It returns why the connection is lost, nil if ctx ends first.
func (b *Broker) ping(ctx context.Context, in *respReader, e endpoint) error {
	ping := time.NewTicker(b.options.HealthCheck)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ping.C:
		}
		if err := in.send("PING"); err != nil {
			return err
		}
		if err := b.stillMaster(ctx, e); err != nil {
			return err
		}
	}
}

// stillMaster returns an error if the sentinels name another master than e by now. That they do not reply is not one.
func (b *Broker) stillMaster(ctx context.Context, e endpoint) error {
	if len(e.sentinels) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.options.DialTimeout)
	defer cancel()
	address, err := b.master(ctx, e)
	if err != nil || address == e.address {
		return nil //nolint:nilerr // without sentinels the connection is as good as it was
	}
	return fmt.Errorf("the master is %s now", address)
}

// Receive implements broker.EventStream.
func (s *eventStream) Receive(ctx context.Context) ([]broker.Message, error) {
	batch, err := s.inbox.take(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range batch {
		s.received++
		batch[i].Tag = s.received
	}
	return batch, nil
}

// Ack implements broker.EventStream. Redis has no acknowledgements.
func (s *eventStream) Ack(tag uint64) error {
	if err := s.inbox.failure(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if tag > s.received {
		return fmt.Errorf("acknowledge message %d: only %d were received", tag, s.received)
	}
	return nil
}

// Done implements broker.EventStream.
func (s *eventStream) Done() <-chan struct{} { return s.inbox.ended }

// Err implements broker.EventStream.
func (s *eventStream) Err() error { return s.inbox.failure() }

// Dropped implements broker.DropCounter.
func (s *eventStream) Dropped() uint64 { return s.inbox.lost() }

// Close implements broker.EventStream. Its error is always nil: a connection that cannot be closed politely is gone.
func (s *eventStream) Close() error {
	s.inbox.end(broker.ErrClosed, true)
	s.stop()
	_ = s.in.conn.Close()
	s.conn.close()
	s.wg.Wait()
	return nil
}
