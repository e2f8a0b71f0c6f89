package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/umbelhq/umbel/internal/dial"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
)

const (
	closeTimeout = 2 * time.Second
	maxReplies   = 4096
)

// controlConn is everything but events, over a few connections of one client. When one of them is lost, all of it
// ends.
type controlConn struct {
	broker    *Broker
	conn      *conn
	mailbox   mailbox
	replyConn *redis.Conn        // reads the mailbox and nothing else, so that its loss is noticed at once
	stop      context.CancelFunc // of what reads the mailbox
	wg        sync.WaitGroup
	replies   chan broker.Publishing
	ended     chan struct{} // closed at the end of the control connection

	mu     sync.Mutex // guards what follows
	err    error      // why the control connection has ended, nil while it has not
	search exchangeScan
}

// openConn starts a control connection: it binds its mailbox and reads it.
func (b *Broker) openConn(ctx context.Context, l *conn) (broker.ControlConn, error) {
	c := &controlConn{
		broker: b, conn: l, mailbox: newMailbox(l.keys), replyConn: l.client.Conn(),
		replies: make(chan broker.Publishing, maxReplies), ended: make(chan struct{}),
		search: exchangeScan{exchanges: map[string]bool{}},
	}
	if err := c.mailbox.bind(ctx, c.replyConn); err != nil {
		return nil, err
	}
	c.mailbox.sweep(ctx, c.replyConn)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.wg.Go(func() { c.read(running) })
	return c, nil
}

// ReplyTo implements broker.ControlConn.
func (c *controlConn) ReplyTo() broker.ReplyTo {
	return broker.ReplyTo{Exchange: "reply." + c.conn.keys.control, RoutingKey: c.mailbox.id}
}

// Request implements broker.ControlConn. Every worker subscribes to the channel with a connection of its own.
func (c *controlConn) Request(ctx context.Context, m broker.Publishing) (receivers int, err error) {
	text, err := envelope(m, c.conn.keys.control, "")
	if err != nil {
		return 0, err
	}
	k := c.conn.keys
	var n *redis.IntCmd
	err = c.do(ctx, "publish request", func() error {
		_, err := c.conn.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			// Kombu removes bindings that nobody has renewed for long, ours with those of dead clients.
			p.SAdd(ctx, c.mailbox.binding(), k.member(c.mailbox.id, c.mailbox.queue()))
			n = p.Publish(ctx, k.pidbox(), text)
			return nil
		})
		if isRefusal(err) { // perhaps of the binding alone
			return n.Err()
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return int(n.Val()), nil
}

// Publish implements broker.ControlConn. Beside the message it leaves the binding that Kombu would when it declares the
// queue, since nothing else shows that it exists.
func (c *controlConn) Publish(ctx context.Context, queue string, m broker.Publishing) error {
	text, err := envelope(m, "", queue)
	if err != nil {
		return err
	}
	k := c.conn.keys
	return c.do(ctx, fmt.Sprintf("publish to queue %q", queue), func() error {
		var pushed *redis.IntCmd
		_, err := c.conn.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.SAdd(ctx, k.binding(queue), k.member(queue, queue))
			pushed = p.LPush(ctx, k.queue(queue, m.Priority), text)
			return nil
		})
		if isRefusal(err) { // perhaps of the binding alone
			return pushed.Err()
		}
		return err
	})
}

// PublishEvent implements broker.ControlConn.
func (c *controlConn) PublishEvent(ctx context.Context, routingKey string, m broker.Publishing) error {
	k := c.conn.keys
	text, err := envelope(m, k.events, routingKey)
	if err != nil {
		return err
	}
	return c.do(ctx, "publish event", func() error { return c.conn.client.Publish(ctx, k.event(routingKey), text).Err() })
}

// envelope is m as it goes to Redis.
func envelope(m broker.Publishing, exchange, routingKey string) ([]byte, error) {
	text, err := celery.Envelope{
		Publishing: m, Exchange: exchange, RoutingKey: routingKey, DeliveryTag: uuid.NewString(),
	}.Append(nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", broker.ErrRefused, err)
	}
	return text, nil
}

// do runs one command, or several that belong together, and maps its error: a lost connection ends the control
// connection.
func (c *controlConn) do(ctx context.Context, what string, command func() error) error {
	if err := c.failure(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// The client does not see the end of a context while it waits for a reply, only its deadline.
	err := command()
	switch word := code(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case word == "READONLY" || word == "LOADING" || word == "MASTERDOWN":
		c.end(lost(err)) // the master is another one now
		return c.failure()
	case word == "NOPERM":
		user := explainRefusal(c.conn.endpoint, err)
		return fmt.Errorf("%s: %w: %s", what, broker.ErrRefused, user)
	case word == "WRONGTYPE":
		return fmt.Errorf("%s: %w: its key holds something else than a queue", what, broker.ErrRefused)
	case word != "":
		return &dial.HintError{Message: what + ": " + refusal(err), Err: err}
	case errors.Is(err, redis.ErrPoolTimeout):
		return fmt.Errorf("%s: %w", what, err)
	}
	c.end(lost(err))
	return c.failure()
}

// end ends the control connection because of err, the first of which counts.
func (c *controlConn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		close(c.ended)
		c.conn.seal()
	}
}

// failure is why the control connection has ended, nil while it has not.
func (c *controlConn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// ReceiveReply implements broker.ControlConn.
func (c *controlConn) ReceiveReply(ctx context.Context) (broker.Publishing, error) {
	if err := cmp.Or(c.failure(), ctx.Err()); err != nil {
		return broker.Publishing{}, err
	}
	select {
	case m := <-c.replies:
		return m, nil
	case <-c.ended:
		return broker.Publishing{}, c.failure()
	case <-ctx.Done():
		return broker.Publishing{}, ctx.Err()
	}
}

// read takes replies out of the mailbox until the control connection ends. Replies that are not received in time are dropped, oldest first.
func (c *controlConn) read(ctx context.Context) {
	for ctx.Err() == nil {
		text, err := c.mailbox.next(ctx, c.replyConn)
		switch {
		case errors.Is(err, redis.Nil):
			continue
		case err != nil:
			c.end(lost(err))
			return
		}
		e, err := celery.ParseEnvelope([]byte(text))
		if err != nil {
			continue // from no worker
		}
		c.deliver(e.Publishing)
	}
}

// deliver hands on a reply, dropping the oldest if too many wait.
func (c *controlConn) deliver(m broker.Publishing) {
	for {
		select {
		case c.replies <- m:
			return
		default:
		}
		select {
		case <-c.replies:
		default:
		}
	}
}

// Close implements broker.ControlConn. Its error is always nil: what cannot be removed expires, or is swept by
// the next control connection.
func (c *controlConn) Close() error {
	if c.failure() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		c.mailbox.remove(ctx, c.conn.client)
		cancel()
	}
	c.end(broker.ErrClosed)
	c.stop()
	c.conn.close()
	c.wg.Wait()
	return nil
}
