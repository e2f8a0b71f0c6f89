package rabbitmq

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/internal/dial"
	"github.com/umbelhq/umbel/monitor/broker"
)

// eventStream consumes one queue over one connection. Commands use connections of their own: RabbitMQ stops
// reading from a connection that publishes when memory or disk run low, acknowledgements included, and then a full
// queue could never be emptied.
type eventStream struct {
	endpoint   endpoint
	conn       *amqp091.Connection
	channel    *amqp091.Channel
	queue      string
	deliveries <-chan amqp091.Delivery // closed at the end of the event stream
	closing    sync.Once
	watching   sync.WaitGroup // for watch
	done       chan struct{}  // closed by watch
	err        error          // why, once done is closed

	mu       sync.Mutex // guards the tags below, and keeps acknowledgements in their order
	received uint64     // tag of the last message that Receive returned
	acked    uint64     // greatest tag acknowledged
}

func newEventStream(e endpoint) *eventStream {
	return &eventStream{endpoint: e, done: make(chan struct{})}
}

// Receive implements broker.EventStream.
func (s *eventStream) Receive(ctx context.Context) ([]broker.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case d, ok := <-s.deliveries:
		if !ok {
			<-s.done
			return nil, s.err
		}
		batch := s.gather(message(d))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.received = batch[len(batch)-1].Tag
		return batch, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// gather returns first and what follows it shortly.
func (s *eventStream) gather(first broker.Message) []broker.Message {
	batch := make([]broker.Message, 1, broker.MaxBatch)
	batch[0] = first
	enough := time.NewTimer(broker.MaxBatchDelay)
	defer enough.Stop()
	for len(batch) < broker.MaxBatch {
		select {
		case d, ok := <-s.deliveries:
			if !ok {
				return batch
			}
			batch = append(batch, message(d))
		case <-enough.C:
			return batch
		}
	}
	return batch
}

func message(d amqp091.Delivery) broker.Message {
	return broker.Message{
		Body:            d.Body,
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		RoutingKey:      d.RoutingKey,
		Redelivered:     d.Redelivered,
		Tag:             d.DeliveryTag,
	}
}

// Ack implements broker.EventStream. It withholds tags for which the broker would close
// the channel.
func (s *eventStream) Ack(tag uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.channel.IsClosed():
		return broker.ErrClosed
	case tag > s.received:
		return fmt.Errorf("acknowledge message %d: only %d were received", tag, s.received)
	case tag <= s.acked:
		return nil
	}
	if err := s.channel.Ack(tag, true); err != nil {
		return fmt.Errorf("%w: %w", broker.ErrClosed, err)
	}
	s.acked = tag
	return nil
}

// Close implements broker.EventStream. Its error is always nil: a connection that cannot be closed
// politely is gone, and the broker delivers again what was not acknowledged.
func (s *eventStream) Close() error {
	s.closing.Do(func() { _ = s.conn.CloseDeadline(time.Now().Add(closeTimeout)) })
	s.watching.Wait()
	return nil
}

// Done implements broker.EventStream.
func (s *eventStream) Done() <-chan struct{} { return s.done }

// Err implements broker.EventStream.
func (s *eventStream) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// watch notes the end of the event stream and why. lost holds why the channel was closed, unless Close did it, and
// cancelled the consumer's tag if the queue was deleted; both are closed with the channel.
func (s *eventStream) watch(lost <-chan *amqp091.Error, cancelled <-chan string) {
	defer close(s.done)
	s.err = broker.ErrClosed
	deleted := false
	select {
	case _, deleted = <-cancelled:
	case err, ok := <-lost:
		if ok {
			s.err = fmt.Errorf("%w: connection lost: %w", broker.ErrClosed, &dial.HintError{Message: reason(err), Err: err})
			return
		}
		_, deleted = <-cancelled
	}
	if deleted {
		s.err = fmt.Errorf("%w: queue %q was deleted", broker.ErrClosed, s.queue)
		return
	}
	if err, ok := <-lost; ok {
		s.err = fmt.Errorf("%w: connection lost: %w", broker.ErrClosed, &dial.HintError{Message: reason(err), Err: err})
	}
}
