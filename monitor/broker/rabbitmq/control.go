package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/internal/dial"
	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	replyTTL      = time.Minute // of replies that nobody reads
	maxReplies    = 10_000      // that wait
	replyPrefetch = 1000
	replyPrefix   = "umbel.reply."
)

// controlConn is two connections: RabbitMQ stops reading from one that publishes when memory or disk run low,
// which is when people want to inspect and purge queues. One connection publishes, the other does everything else.
// The goroutine that watches them ends the control connection; every other goroutine is started by start and ends
// with the connections.
type controlConn struct {
	broker              *Broker
	endpoint            endpoint
	publishing, reading *amqp091.Connection
	replyQueue          string
	replies             <-chan amqp091.Delivery
	management          *management // nil without a URL of it

	closing   chan struct{} // closed by Close
	closeOnce sync.Once
	ended     chan struct{}          // closed after err was set
	blocked   atomic.Pointer[string] // why the broker accepts no messages, nil if it does
	slots     chan struct{}          // one for each publish channel in use
	running   sync.WaitGroup

	mu       sync.Mutex // guards what is below
	err      error
	channels []*publishChannel // not in use
}

// OpenControl implements broker.Broker. It tries the broker's addresses in turn, each for at most Options.DialTimeout, and
// declares the exchange of events, and the exchanges and the queue of remote control.
func (b *Broker) OpenControl(ctx context.Context) (broker.ControlConn, error) {
	return dial.FirstOf(ctx, b.endpoints, b.openControlConn)
}

func (b *Broker) openControlConn(ctx context.Context, e endpoint) (broker.ControlConn, error) {
	c := &controlConn{
		broker: b, endpoint: e,
		closing: make(chan struct{}), ended: make(chan struct{}), slots: make(chan struct{}, maxPublishChannels),
	}
	var lost [3]<-chan *amqp091.Error
	var cancelled <-chan string
	var err error
	c.reading, err = b.open(ctx, e, func(conn *amqp091.Connection) error {
		lost[0] = conn.NotifyClose(make(chan *amqp091.Error, 1))
		ch, err := c.listen(conn)
		if err != nil {
			return err
		}
		lost[1] = ch.NotifyClose(make(chan *amqp091.Error, 1))
		cancelled = ch.NotifyCancel(make(chan string, 1))
		return nil
	})
	if err != nil {
		return nil, err
	}
	var blocked <-chan amqp091.Blocking
	c.publishing, err = b.open(ctx, e, func(conn *amqp091.Connection) error {
		lost[2] = conn.NotifyClose(make(chan *amqp091.Error, 1))
		blocked = conn.NotifyBlocked(make(chan amqp091.Blocking, 8))
		return nil
	})
	if err != nil {
		_ = c.reading.CloseDeadline(time.Now().Add(closeTimeout))
		return nil, err
	}
	if b.management != nil {
		c.management = b.management.open()
	}
	c.running.Go(func() { c.watch(lost, cancelled, blocked) })
	return c, nil
}

// listen declares what remote control needs, and starts reading replies.
func (c *controlConn) listen(conn *amqp091.Connection) (*amqp091.Channel, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	d, replies := declaration{ch, c.endpoint.user}, c.ReplyTo().Exchange
	for exchange, kind := range map[string]string{
		c.broker.options.pidbox(): amqp091.ExchangeFanout, replies: amqp091.ExchangeDirect,
	} {
		conflict := "Celery's exchanges of remote control are not durable, and this one is of type " + kind +
			": delete it, or name the control exchange that Celery uses"
		if err := d.exchange(exchange, kind, false, conflict); err != nil {
			return nil, err
		}
	}
	if err := d.events(c.broker.options.Exchange); err != nil {
		return nil, err
	}
	c.replyQueue = replyPrefix + strings.TrimPrefix(transientName(), "umbel.")
	err = d.queue(c.replyQueue, false, amqp091.Table{
		"x-queue-type": "classic", "x-message-ttl": replyTTL.Milliseconds(), "x-max-length": int64(maxReplies),
		"x-overflow": "drop-head",
	}, c.replyQueue, replies)
	if err != nil {
		return nil, err
	}
	c.replies, err = d.consume(c.replyQueue, replyPrefetch)
	return ch, err
}

// watch ends the control connection when it is closed or when a part of it is lost.
func (c *controlConn) watch(lost [3]<-chan *amqp091.Error, cancelled <-chan string, blocked <-chan amqp091.Blocking) {
	err := c.lost(lost, cancelled, blocked)
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	close(c.ended)
	end := time.Now().Add(closeTimeout)
	_ = c.publishing.CloseDeadline(end)
	_ = c.reading.CloseDeadline(end)
	if c.management != nil {
		c.management.close()
	}
}

// lost waits for what ends the control connection, and returns what its methods return then.
func (c *controlConn) lost(lost [3]<-chan *amqp091.Error, cancelled <-chan string, blocked <-chan amqp091.Blocking) error {
	var cause *amqp091.Error
	for {
		select {
		case state, ok := <-blocked:
			c.note(state)
			if !ok {
				blocked = nil
			}
			continue
		case _, ok := <-cancelled:
			if ok {
				return fmt.Errorf("%w: queue %q was deleted", broker.ErrClosed, c.replyQueue)
			}
			cancelled = nil // the connection's end, which is reported as well
			continue
		case cause = <-lost[0]:
		case cause = <-lost[1]:
		case cause = <-lost[2]:
		case <-c.closing:
		}
		break
	}
	if cause == nil {
		return broker.ErrClosed
	}
	return fmt.Errorf("%w: connection lost: %w", broker.ErrClosed, &dial.HintError{Message: reason(cause), Err: cause})
}

// note remembers whether the broker accepts messages.
func (c *controlConn) note(state amqp091.Blocking) {
	if !state.Active {
		c.blocked.Store(nil)
		return
	}
	why := cmp.Or(state.Reason, "it does not say why")
	c.blocked.Store(&why)
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

// start runs a goroutine that Close waits for, or returns why the control connection has ended.
func (c *controlConn) start(run func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.running.Go(run)
	return nil
}

// await runs call, which knows no contexts, and returns what it does, unless ctx or the control connection end first.
func await[T any](ctx context.Context, c *controlConn, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if err := c.check(ctx); err != nil {
		return none, err
	}
	done := make(chan result, 1)
	if err := c.start(func() {
		value, err := call()
		done <- result{value, err}
	}); err != nil {
		return none, err
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-c.ended:
		return none, c.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// ReplyTo implements broker.ControlConn.
func (c *controlConn) ReplyTo() broker.ReplyTo {
	return broker.ReplyTo{Exchange: "reply." + c.broker.options.pidbox(), RoutingKey: c.replyQueue}
}

// ReceiveReply implements broker.ControlConn.
func (c *controlConn) ReceiveReply(ctx context.Context) (broker.Publishing, error) {
	if err := c.check(ctx); err != nil {
		return broker.Publishing{}, err
	}
	select {
	case d, ok := <-c.replies:
		if !ok {
			<-c.ended // what closed it ends the control connection
			return broker.Publishing{}, c.err
		}
		if err := d.Ack(false); err != nil && !errors.Is(err, amqp091.ErrClosed) {
			return broker.Publishing{}, fmt.Errorf("acknowledge reply: %w", err)
		}
		return received(d), nil
	case <-c.ended:
		return broker.Publishing{}, c.err
	case <-ctx.Done():
		return broker.Publishing{}, ctx.Err()
	}
}

// Peek implements broker.ControlConn. Giving messages back to RabbitMQ would change their order and count as a
// delivery, which quorum queues limit.
func (c *controlConn) Peek(ctx context.Context, _ string, _ int) ([]broker.Publishing, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("look into a queue of RabbitMQ: %w", broker.ErrUnsupported)
}

// Find implements broker.ControlConn, like Peek.
func (c *controlConn) Find(ctx context.Context, _ []string, _ string) (*broker.Publishing, error) {
	if err := c.check(ctx); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("look into queues of RabbitMQ: %w", broker.ErrUnsupported)
}

// Close implements broker.ControlConn. Its error is always nil: a connection that cannot be closed politely is gone.
func (c *controlConn) Close() error {
	c.closeOnce.Do(func() { close(c.closing) })
	c.running.Wait()
	return nil
}
