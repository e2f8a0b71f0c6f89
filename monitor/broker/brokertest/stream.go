package brokertest

import (
	"context"
	"errors"
	"sync"

	"github.com/umbelhq/umbel/monitor/broker"
)

func (c streamTest) ackBounds() {
	s := c.connect()
	c.publish(0, 3)
	c.receive(s, 3)
	for _, tag := range []uint64{0, 2, 2, 1, 3, 3, 0} {
		if err := s.Ack(tag); err != nil {
			c.Errorf("acknowledge message %d of 3: %v", tag, err)
		}
	}
	if err := s.Ack(4); err == nil || errors.Is(err, broker.ErrClosed) {
		c.Errorf("acknowledge message 4 of 3: error %v, want one that does not end the stream", err)
	}
	c.publish(3, 1)
	if got, want := c.receive(s, 1)[0].Tag, uint64(4); got != want {
		c.Errorf("tag = %d, want %d", got, want)
	}
	if err := s.Ack(4); err != nil {
		c.Errorf("acknowledge message 4 of 4: %v", err)
	}
}

func (c streamTest) ackUpTo() {
	s := c.connect()
	c.publish(0, 100)
	c.receive(s, 100)
	if err := s.Ack(60); err != nil {
		c.Fatalf("acknowledge 60 messages: %v", err)
	}
	if err := s.Close(); err != nil {
		c.Fatalf("close stream: %v", err)
	}
	if !c.Redelivers {
		c.expectNothing(c.connect())
		return
	}
	s = c.connect()
	c.expectMessages(c.receive(s, 40), 60, true)
	if err := s.Ack(40); err != nil {
		c.Fatalf("acknowledge 40 messages: %v", err)
	}
	if err := s.Close(); err != nil {
		c.Fatalf("close stream: %v", err)
	}
	c.expectNothing(c.connect())
}

func (c streamTest) closeEnds() {
	s := c.connect()
	c.publish(0, 1)
	c.receive(s, 1)
	for range 3 {
		if err := c.within("Close", s.Close); err != nil {
			c.Fatalf("close stream: %v", err)
		}
	}
	_, err := s.Receive(c.Context())
	c.expectClosed("Receive", err)
	c.expectClosed("Ack", s.Ack(1))
}

func (c streamTest) closeWakes() {
	s := c.connect()
	received := make(chan error, 1)
	go func() {
		_, err := s.Receive(context.WithoutCancel(c.Context()))
		received <- err
	}()
	if err := s.Close(); err != nil {
		c.Fatalf("close stream: %v", err)
	}
	c.expectClosed("Receive", c.within("Receive of a closed stream", func() error { return <-received }))
}

func (c streamTest) lostConnection() {
	s := c.connect()
	c.publish(0, 1)
	c.receive(s, 1)
	received := make(chan error, 1)
	go func() {
		_, err := s.Receive(context.WithoutCancel(c.Context()))
		received <- err
	}()
	if err := s.Err(); err != nil {
		c.Errorf("error of a stream that goes on: %v", err)
	}
	c.Break(c.T)
	c.expectClosed("Receive", c.within("Receive of a lost stream", func() error { return <-received }))
	c.expectClosed("Ack", s.Ack(1))
	c.expectDone(s)
}

// lostUnread loses the connection while nobody receives and messages wait.
func (c streamTest) lostUnread() {
	s := c.connect()
	c.publish(0, 1)
	c.receive(s, 1)
	c.publish(1, 9)
	c.Break(c.T)
	c.expectDone(s)
}

// expectDone waits for an event stream to say that it has ended.
func (c streamTest) expectDone(s broker.EventStream) {
	c.Helper()
	c.expectClosed("Err", c.within("Done of a lost stream", func() error {
		<-s.Done()
		return s.Err()
	}))
}

func (c streamTest) reconnect() {
	s := c.connect()
	c.publish(0, 2)
	c.receive(s, 2)
	if err := s.Ack(2); err != nil {
		c.Fatalf("acknowledge 2 messages: %v", err)
	}
	c.Break(c.T)
	if err := c.within("Close of a lost stream", s.Close); err != nil {
		c.Fatalf("close stream: %v", err)
	}
	s = c.connect()
	if c.Redelivers {
		// A broker may not have seen the acknowledgement before the connection broke.
		c.drain(s)
		return
	}
	c.publish(2, 3)
	c.expectMessages(c.receive(s, 3), 2, false)
}

// drain publishes one more message and receives until it arrives.
func (c streamTest) drain(s broker.EventStream) {
	c.Helper()
	c.publish(2, 1)
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	for {
		batch, err := s.Receive(ctx)
		if err != nil {
			c.Fatalf("receive after a reconnect: %v", err)
		}
		for _, m := range batch {
			if string(m.Body) == "2" {
				return
			}
			if !m.Redelivered {
				c.Errorf("message %s is not marked as redelivered", m.Body)
			}
		}
	}
}

func (c streamTest) connectContext() {
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	if _, err := c.Broker.Subscribe(ctx); !errors.Is(err, context.Canceled) {
		c.Errorf("connect with an ended context: error %v, want %v", err, context.Canceled)
	}
	ctx, cancel = context.WithTimeout(c.Context(), timeout)
	s, err := c.Broker.Subscribe(ctx)
	if err != nil {
		c.Fatalf("connect to %s: %v", c.Broker, err)
	}
	cancel() // bounds the call only
	c.publish(0, 1)
	c.expectMessages(c.receive(s, 1), 0, false)
	if err := s.Close(); err != nil {
		c.Fatalf("close stream: %v", err)
	}
}

// concurrent is there for the race detector.
func (c streamTest) concurrent() {
	const total = 300
	s := c.connect()
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	tags := make(chan uint64, total)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for tag := range tags {
				if err := s.Ack(tag); err != nil {
					c.Errorf("acknowledge message %d: %v", tag, err)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range total {
			if err := c.Publish(ctx, message(i)); err != nil {
				c.Errorf("publish message %d: %v", i, err)
			}
		}
	})
	for _, m := range c.receive(s, total) {
		tags <- m.Tag
	}
	close(tags)
	wg.Wait()
	for range 3 {
		wg.Go(func() {
			if err := s.Close(); err != nil {
				c.Errorf("close stream: %v", err)
			}
		})
	}
	wg.Wait()
}
