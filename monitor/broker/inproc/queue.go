package inproc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// maxWaiting is how many messages may wait in one queue, so that one without consumers does not fill the memory.
const maxWaiting = 100_000

// queue is first in, first out. The broker's queuesMu guards it.
type queue struct {
	waiting   []broker.Publishing
	returned  int // the first of waiting that were delivered before
	consumers map[*Consumer]struct{}
	more      chan struct{} // closed when messages come, then replaced

	published, delivered, acked, redelivered int64
}

// all returns what waits and what consumers hold.
func (q *queue) all() []broker.Publishing {
	all := slices.Clone(q.waiting)
	for c := range q.consumers {
		for _, d := range c.unacked {
			all = append(all, d.message)
		}
	}
	return all
}

// signal wakes the consumers that wait.
func (q *queue) signal() {
	close(q.more)
	q.more = make(chan struct{})
}

// Declare makes sure that there is a queue.
func (b *Broker) Declare(name string) {
	b.queuesMu.Lock()
	defer b.queuesMu.Unlock()
	b.declare(name)
}

// declare returns the queue of a name. The caller holds queuesMu.
func (b *Broker) declare(name string) *queue {
	q := b.queues[name]
	if q == nil {
		q = &queue{consumers: make(map[*Consumer]struct{}), more: make(chan struct{})}
		b.queues[name] = q
	}
	return q
}

// put appends a message to a queue.
func (b *Broker) put(name string, m broker.Publishing) error {
	b.queuesMu.Lock()
	defer b.queuesMu.Unlock()
	q := b.queues[name]
	if q == nil {
		return fmt.Errorf("publish to queue %q: %w", name, broker.ErrNoQueue)
	}
	if len(q.waiting) >= maxWaiting {
		return fmt.Errorf("publish to queue %q: %w: %d messages wait in it", name, broker.ErrRefused, maxWaiting)
	}
	q.waiting = append(q.waiting, m)
	q.published++
	q.signal()
	return nil
}

// Consumer takes messages from a queue as a worker does. Its methods are called from one goroutine.
type Consumer struct {
	broker  *Broker
	queue   *queue
	unacked []delivery // oldest first
}

// delivery is a message that a consumer holds.
type delivery struct {
	message broker.Publishing
	at      time.Time
}

// Consume starts a consumer of a queue, which is declared. Close must follow.
func (b *Broker) Consume(name string) *Consumer {
	b.queuesMu.Lock()
	defer b.queuesMu.Unlock()
	c := &Consumer{broker: b, queue: b.declare(name)}
	c.queue.consumers[c] = struct{}{}
	return c
}

// Take waits for the next message and holds it until Done. It returns ctx's error if ctx ends first.
func (c *Consumer) Take(ctx context.Context) (broker.Publishing, error) {
	for {
		m, more := c.next()
		if more == nil {
			return m, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return broker.Publishing{}, ctx.Err()
		}
	}
}

// next takes a message, or returns a channel that is closed when trying again makes sense.
func (c *Consumer) next() (broker.Publishing, <-chan struct{}) {
	c.broker.queuesMu.Lock()
	defer c.broker.queuesMu.Unlock()
	q := c.queue
	if len(q.waiting) == 0 {
		return broker.Publishing{}, q.more
	}
	m := q.waiting[0]
	q.waiting[0] = broker.Publishing{} // the array may live on for long
	q.waiting = q.waiting[1:]
	q.delivered++
	if q.returned > 0 {
		q.returned--
		q.redelivered++
	}
	c.unacked = append(c.unacked, delivery{m, time.Now()})
	return m, nil
}

// Done acknowledges the message that the consumer holds longest.
func (c *Consumer) Done() error {
	c.broker.queuesMu.Lock()
	defer c.broker.queuesMu.Unlock()
	if len(c.unacked) == 0 {
		return errors.New("acknowledge a message: none is held")
	}
	c.unacked = slices.Delete(c.unacked, 0, 1)
	c.queue.acked++
	return nil
}

// Close ends the consumer. What it holds goes back to where it was taken from.
func (c *Consumer) Close() {
	c.broker.queuesMu.Lock()
	defer c.broker.queuesMu.Unlock()
	delete(c.queue.consumers, c)
	if len(c.unacked) == 0 {
		return
	}
	back := make([]broker.Publishing, len(c.unacked), len(c.unacked)+len(c.queue.waiting))
	for i, d := range c.unacked {
		back[i] = d.message
	}
	c.queue.returned += len(back)
	c.queue.waiting = append(back, c.queue.waiting...)
	c.unacked = nil
	c.queue.signal()
}
