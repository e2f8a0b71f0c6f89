package inproc

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	replyExchange = "reply"
	maxReplies    = 10_000 // wait for a control connection that does not read them
)

// Listen attaches a mailbox: handle is called with every request from then on, in the goroutine that makes the request,
// until detach is called. It must neither keep nor change what it is given.
func (b *Broker) Listen(handle func(broker.Publishing)) (detach func()) {
	b.connsMu.Lock()
	defer b.connsMu.Unlock()
	b.lastMailbox++
	n := b.lastMailbox
	b.mailboxes[n] = handle
	return func() {
		b.connsMu.Lock()
		defer b.connsMu.Unlock()
		delete(b.mailboxes, n)
	}
}

// Reply sends a reply to the control connection with the address to. It is dropped if there is no such connection, or
// if too many wait there. The broker owns m from then on.
func (b *Broker) Reply(to broker.ReplyTo, m broker.Publishing) {
	b.connsMu.Lock()
	defer b.connsMu.Unlock()
	c := b.conns[to.RoutingKey]
	if c == nil || to.Exchange != replyExchange {
		return
	}
	select {
	case c.replies <- m:
	default:
	}
}

// OpenControl implements broker.Broker. It fails with the error given to Refuse.
func (b *Broker) OpenControl(ctx context.Context) (broker.ControlConn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	refusal := b.refusal
	b.mu.Unlock()
	if refusal != nil {
		return nil, refusal
	}
	c := &controlConn{
		broker: b, key: rand.Text(), replies: make(chan broker.Publishing, maxReplies), ended: make(chan struct{}),
	}
	b.connsMu.Lock()
	defer b.connsMu.Unlock()
	b.conns[c.key] = c
	return c, nil
}

// failConns ends all control connections.
func (b *Broker) failConns(err error) {
	b.connsMu.Lock()
	defer b.connsMu.Unlock()
	for _, c := range b.conns {
		c.end(err)
	}
}

// controlConn is one control connection to a Broker, whose connsMu guards it.
type controlConn struct {
	broker  *Broker
	key     string
	replies chan broker.Publishing
	ended   chan struct{} // closed at the end, after err was set
	err     error
}

// end ends l once. The caller holds connsMu.
func (c *controlConn) end(err error) {
	if c.err == nil {
		c.err = err
		close(c.ended)
		delete(c.broker.conns, c.key)
	}
}

// check says why nothing can be done with l.
func (c *controlConn) check(ctx context.Context) error {
	select {
	case <-c.ended:
		return c.err
	default:
		return ctx.Err()
	}
}

// Close implements broker.ControlConn.
func (c *controlConn) Close() error {
	c.broker.connsMu.Lock()
	defer c.broker.connsMu.Unlock()
	c.end(broker.ErrClosed)
	return nil
}

// Request implements broker.ControlConn. It returns when every mailbox has handled the request.
func (c *controlConn) Request(ctx context.Context, m broker.Publishing) (int, error) {
	if err := c.check(ctx); err != nil {
		return 0, err
	}
	b := c.broker
	b.connsMu.Lock()
	mailboxes := make([]func(broker.Publishing), 0, len(b.mailboxes))
	for _, n := range slices.Sorted(maps.Keys(b.mailboxes)) {
		mailboxes = append(mailboxes, b.mailboxes[n])
	}
	b.connsMu.Unlock()
	for _, handle := range mailboxes {
		handle(m)
	}
	return len(mailboxes), nil
}

// ReplyTo implements broker.ControlConn.
func (c *controlConn) ReplyTo() broker.ReplyTo {
	return broker.ReplyTo{Exchange: replyExchange, RoutingKey: c.key}
}

// ReceiveReply implements broker.ControlConn.
func (c *controlConn) ReceiveReply(ctx context.Context) (broker.Publishing, error) {
	if err := c.check(ctx); err != nil {
		return broker.Publishing{}, err
	}
	select {
	case m := <-c.replies:
		return m, nil
	case <-c.ended:
		return broker.Publishing{}, c.err
	case <-ctx.Done():
		return broker.Publishing{}, ctx.Err()
	}
}

// Publish implements broker.ControlConn. A message is never refused for its size, but when 100,000 wait in the queue.
func (c *controlConn) Publish(ctx context.Context, name string, m broker.Publishing) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	m.Body = bytes.Clone(m.Body)
	m.Headers = maps.Clone(m.Headers)
	return c.broker.put(name, m)
}

// PublishEvent implements broker.ControlConn. It waits for room like Broker.Publish.
func (c *controlConn) PublishEvent(ctx context.Context, routingKey string, m broker.Publishing) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	return c.broker.Publish(ctx, broker.Message{
		Body: bytes.Clone(m.Body), ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, RoutingKey: routingKey,
	})
}

// Purge implements broker.ControlConn.
func (c *controlConn) Purge(ctx context.Context, name string) (int64, error) {
	if err := c.check(ctx); err != nil {
		return 0, err
	}
	b := c.broker
	b.queuesMu.Lock()
	defer b.queuesMu.Unlock()
	q := b.queues[name]
	if q == nil {
		return 0, fmt.Errorf("purge queue %q: %w", name, broker.ErrNoQueue)
	}
	n := len(q.waiting)
	q.waiting, q.returned = nil, 0
	return int64(n), nil
}

// Peek implements broker.ControlConn.
func (c *controlConn) Peek(ctx context.Context, name string, limit int) ([]broker.Publishing, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	b := c.broker
	b.queuesMu.Lock()
	defer b.queuesMu.Unlock()
	q := b.queues[name]
	if q == nil {
		return nil, fmt.Errorf("look into queue %q: %w", name, broker.ErrNoQueue)
	}
	return slices.Clone(q.waiting[:min(max(limit, 0), len(q.waiting))]), nil
}

// Find implements broker.ControlConn. It knows tasks by their correlation ids.
func (c *controlConn) Find(ctx context.Context, names []string, taskID string) (*broker.Publishing, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	b := c.broker
	b.queuesMu.Lock()
	defer b.queuesMu.Unlock()
	for _, name := range names {
		q := b.queues[name]
		if q == nil {
			continue
		}
		for _, m := range q.all() {
			if m.CorrelationID == taskID {
				return &m, nil
			}
		}
	}
	return nil, nil
}

// QueueStats implements broker.ControlConn. It reports all queues.
func (c *controlConn) QueueStats(ctx context.Context, names []string) (broker.QueueStats, error) {
	if err := c.check(ctx); err != nil {
		return broker.QueueStats{}, err
	}
	b := c.broker
	simulated := make(map[string]broker.Queue)
	if b.simulated != nil {
		for _, q := range b.simulated(ctx) {
			simulated[q.Name] = q
		}
	}
	b.queuesMu.Lock()
	defer b.queuesMu.Unlock()
	s := broker.QueueStats{At: time.Now(), Source: "memory", Broker: broker.Info{Kind: "memory"}}
	all := slices.Concat(names, slices.Collect(maps.Keys(b.queues)), slices.Collect(maps.Keys(simulated)))
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		q, ok := simulated[name]
		if !ok {
			q = b.queues[name].stats(name)
		}
		s.Queues = append(s.Queues, q)
	}
	return s, nil
}

// stats is what QueueStats reports of q, which is nil if there is no such queue.
func (q *queue) stats(name string) broker.Queue {
	if q == nil {
		return broker.Queue{Name: name, Missing: true}
	}
	ready, consumers := int64(len(q.waiting)), int64(len(q.consumers))
	unacked, published, delivered, acked, redelivered := int64(0), q.published, q.delivered, q.acked, q.redelivered
	var oldest *time.Time
	for c := range q.consumers {
		unacked += int64(len(c.unacked))
		for _, d := range c.unacked {
			if oldest == nil || d.at.Before(*oldest) {
				oldest = &d.at
			}
		}
	}
	return broker.Queue{
		Name: name, Type: "memory", State: "running", Ready: &ready, Unacked: &unacked, Consumers: &consumers,
		Published: &published, Delivered: &delivered, Acked: &acked, Redelivered: &redelivered, OldestUnacked: oldest,
	}
}
