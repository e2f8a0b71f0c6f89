package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/transport"
)

const (
	pingEvery = 15 * time.Second
	// silence is how long nothing may arrive, not even the answer to a ping.
	silence = pingEvery + ioTimeout
)

// session listens to the channels of events. Redis keeps nothing for those who do not listen.
type session struct {
	broker *Broker
	link   *link
	pubsub *redis.PubSub
	inbox  *inbox
	stop   context.CancelFunc // of what runs beside Receive
	wg     sync.WaitGroup

	mu       sync.Mutex // guards received
	received uint64     // tag of the last message that Receive returned
}

// subscribe starts a session once Redis has confirmed its subscriptions.
func (b *Broker) subscribe(ctx context.Context, l *link) (transport.Session, error) {
	patterns := l.keys.patterns()
	pubsub := l.client.PSubscribe(ctx)
	err := pubsub.PSubscribe(ctx, patterns...)
	if err == nil {
		err = confirmed(ctx, pubsub, len(patterns))
	}
	if err != nil {
		_ = pubsub.Close()
		return nil, err
	}
	l.seal()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{broker: b, link: l, pubsub: pubsub, inbox: newInbox(), stop: stop}
	s.wg.Go(func() { s.read(running) })
	s.wg.Go(func() { s.keep(running) })
	return s, nil
}

// confirmed waits until Redis has confirmed n subscriptions.
func confirmed(ctx context.Context, pubsub *redis.PubSub, n int) error {
	for n > 0 {
		m, err := pubsub.ReceiveTimeout(ctx, ioTimeout)
		if err != nil {
			return err
		}
		if _, ok := m.(*redis.Subscription); ok {
			n--
		}
	}
	return nil
}

// read passes messages on as fast as they come, until the connection ends.
func (s *session) read(ctx context.Context) {
	for {
		m, err := s.pubsub.ReceiveTimeout(ctx, silence)
		if err != nil {
			s.inbox.end(lost(err), false)
			return
		}
		if m, ok := m.(*redis.Message); ok {
			s.inbox.put(m.Payload)
		}
	}
}

// keep pings, so that a dead connection is noticed, and with sentinels watches for another master.
func (s *session) keep(ctx context.Context) {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ping.C:
		}
		if err := s.pubsub.Ping(ctx); err != nil {
			s.inbox.end(lost(err), false)
			return
		}
		if err := s.broker.stillMaster(ctx, s.link.endpoint); err != nil {
			s.inbox.end(lost(err), false)
			return
		}
	}
}

// stillMaster returns an error if the sentinels name another master than e by now. That they do not answer is none.
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

// Receive implements transport.Session.
func (s *session) Receive(ctx context.Context) ([]transport.Message, error) {
	payloads, err := s.inbox.take(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := make([]transport.Message, len(payloads))
	for i, p := range payloads {
		m, err := celery.ParseEventEnvelope(p)
		if err != nil { // whoever decodes events counts it
			m = transport.Message{Body: []byte(p)}
		}
		s.received++
		m.Tag = s.received
		batch[i] = m
	}
	return batch, nil
}

// Ack implements transport.Session. There is nothing to tell Redis.
func (s *session) Ack(tag uint64) error {
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

// Dropped implements transport.Lossy.
func (s *session) Dropped() uint64 { return s.inbox.lost() }

// Close implements transport.Session. Its error is always nil: a connection that cannot be closed politely is gone.
func (s *session) Close() error {
	s.inbox.end(transport.ErrClosed, true)
	s.stop()
	s.link.close()
	_ = s.pubsub.Close()
	s.wg.Wait()
	return nil
}
