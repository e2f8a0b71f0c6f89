package inproc

import (
	"context"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// eventStream receives from a Broker, whose mutex guards it.
type eventStream struct {
	broker *Broker
	ready  chan struct{} // holds one token; sent when wanted messages are there, and at the end

	wanted int    // unread messages the receiver waits for, 0 if it does not wait
	last   uint64 // tag given last
	acked  uint64 // greatest tag acknowledged
	err    error  // why the event stream has ended, nil while it has not
	done   chan struct{}
}

func newEventStream(b *Broker) *eventStream {
	return &eventStream{broker: b, ready: make(chan struct{}, 1), done: make(chan struct{})}
}

// Receive implements broker.EventStream.
func (s *eventStream) Receive(ctx context.Context) ([]broker.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.wait(ctx, 1, nil); err != nil {
		return nil, err
	}
	enough := time.NewTimer(broker.MaxBatchDelay)
	defer enough.Stop()
	// Whatever ends this wait, the first message is there to be returned.
	_ = s.wait(ctx, min(broker.MaxBatch, s.broker.limit), enough.C)
	return s.take()
}

// wait returns nil when n messages are unread or enough fires.
func (s *eventStream) wait(ctx context.Context, n int, enough <-chan time.Time) error {
	for {
		if done, err := s.poll(n); done {
			return err
		}
		select {
		case <-s.ready:
		case <-enough:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// poll says whether the wait for n messages is over, and asks to be woken if it is not.
func (s *eventStream) poll(n int) (done bool, err error) {
	b := s.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	s.wanted = 0
	if s.err != nil {
		return true, s.err
	}
	if b.unread() >= n {
		return true, nil
	}
	s.wanted = n
	return false, nil
}

// take moves a batch from unread to received.
func (s *eventStream) take() ([]broker.Message, error) {
	b := s.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	s.wanted = 0
	if s.err != nil {
		return nil, s.err
	}
	batch := make([]broker.Message, min(b.unread(), broker.MaxBatch))
	copy(batch, b.messages[b.received:])
	b.received += len(batch)
	for i := range batch {
		s.last++
		batch[i].Tag = s.last
	}
	if b.waiting && b.unread() < b.limit {
		close(b.writable)
		b.writable, b.waiting = make(chan struct{}), false
	}
	return batch, nil
}

// wake makes the receiver check again.
func (s *eventStream) wake() {
	select {
	case s.ready <- struct{}{}:
	default: // it will check again anyway
	}
}

// Ack implements broker.EventStream.
func (s *eventStream) Ack(tag uint64) error {
	b := s.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case tag > s.last:
		return fmt.Errorf("acknowledge message %d: only %d were received", tag, s.last)
	case tag <= s.acked:
		return nil
	}
	n := int(tag - s.acked) // at most b.received
	clear(b.messages[:n])   // the array may live on for long
	b.messages = b.messages[n:]
	b.received -= n
	s.acked = tag
	return nil
}

// Done implements broker.EventStream.
func (s *eventStream) Done() <-chan struct{} { return s.done }

// Err implements broker.EventStream.
func (s *eventStream) Err() error {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	return s.err
}

// Close implements broker.EventStream.
func (s *eventStream) Close() error {
	s.broker.mu.Lock()
	defer s.broker.mu.Unlock()
	if s.err == nil {
		s.end(broker.ErrClosed)
	}
	return nil
}

// end gives back what was received and not acknowledged, and wakes the receiver. The caller holds
// the broker's mutex, and the event stream has not ended before.
func (s *eventStream) end(err error) {
	b := s.broker
	s.err = err
	close(s.done)
	for i := range b.received {
		b.messages[i].Redelivered = true
	}
	b.received = 0
	b.stream = nil
	s.wake()
}
