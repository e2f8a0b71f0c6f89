package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/internal/dial"
	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	peerPrefix   = "umbel.peers."
	peerTTL      = time.Minute // of messages that nobody reads
	peerPrefetch = 100
)

// peerConn is a connection with a queue of its own, bound to an exchange that goes with the last queue.
type peerConn struct {
	exchange   string
	user       string
	conn       *amqp091.Connection
	channel    *amqp091.Channel
	deliveries <-chan amqp091.Delivery

	closeOnce sync.Once
	closing   chan struct{} // closed by Close
	ended     chan struct{} // closed after err was set
	err       error
	watching  sync.WaitGroup
}

// OpenPeers implements broker.PeerBroker. It tries the broker's addresses in turn, each for at most Options.DialTimeout.
func (b *Broker) OpenPeers(ctx context.Context) (broker.PeerConn, error) {
	return dial.FirstOf(ctx, b.endpoints, b.openPeerConn)
}

func (b *Broker) openPeerConn(ctx context.Context, e endpoint) (broker.PeerConn, error) {
	c := &peerConn{
		exchange: peerPrefix + b.options.ControlExchange, user: e.user, closing: make(chan struct{}), ended: make(chan struct{}),
	}
	var lost [2]<-chan *amqp091.Error
	var cancelled <-chan string
	var err error
	c.conn, err = b.open(ctx, e, func(conn *amqp091.Connection) (err error) {
		if c.channel, err = conn.Channel(); err != nil {
			return fmt.Errorf("open channel: %w", err)
		}
		lost[0] = conn.NotifyClose(make(chan *amqp091.Error, 1))
		lost[1] = c.channel.NotifyClose(make(chan *amqp091.Error, 1))
		cancelled = c.channel.NotifyCancel(make(chan string, 1))
		return c.declare(declaration{c.channel, e.user})
	})
	if err != nil {
		if refusal, ok := errors.AsType[*amqp091.Error](err); ok && refusal.Code == amqp091.AccessRefused {
			err = &dial.HintError{Message: err.Error(), Err: errors.Join(broker.ErrRefused, err)}
		}
		return nil, err
	}
	c.watching.Go(func() { c.watch(lost, cancelled) })
	return c, nil
}

// declare declares the exchange and the queue, and starts reading.
func (c *peerConn) declare(d declaration) error {
	err := d.channel.ExchangeDeclare(c.exchange, amqp091.ExchangeFanout, false, true, false, false, nil)
	err = stepError(fmt.Sprintf("declare exchange %q", c.exchange), err, hints{
		amqp091.PreconditionFailed: "it exists with other properties: delete it",
		amqp091.AccessRefused:      d.needs("configure permission on it"),
	})
	if err != nil {
		return err
	}
	queue := peerPrefix + strings.TrimPrefix(transientName(), "umbel.")
	err = d.queue(queue, false, amqp091.Table{
		"x-queue-type": "classic", "x-message-ttl": peerTTL.Milliseconds(), "x-max-length": int64(broker.MaxPeerBacklog), "x-overflow": "drop-head",
	}, "", c.exchange)
	if err != nil {
		return err
	}
	c.deliveries, err = d.consume(queue, peerPrefetch)
	return err
}

// watch ends the connection when it is closed or lost.
func (c *peerConn) watch(lost [2]<-chan *amqp091.Error, cancelled <-chan string) {
	c.err = broker.ErrClosed
	var cause *amqp091.Error
	select {
	case cause = <-lost[0]:
	case cause = <-lost[1]:
	case <-cancelled:
		c.err = fmt.Errorf("%w: the queue of peers was deleted", broker.ErrClosed)
	case <-c.closing:
	}
	if cause != nil {
		known := &dial.HintError{Message: reason(cause), Err: cause}
		c.err = fmt.Errorf("%w: connection lost: %w", broker.ErrClosed, known)
		if cause.Code == amqp091.AccessRefused {
			known.Message += fmt.Sprintf("; user %q needs write permission on exchange %q", c.user, c.exchange)
			c.err = fmt.Errorf("%w: %w: %w", broker.ErrClosed, broker.ErrRefused, known)
		}
	}
	close(c.ended)
	_ = c.conn.CloseDeadline(time.Now().Add(closeTimeout))
}

// Publish implements broker.PeerConn.
func (c *peerConn) Publish(ctx context.Context, body []byte) error {
	select {
	case <-c.ended:
		return c.err
	default:
	}
	err := c.channel.PublishWithContext(ctx, c.exchange, "", false, false, amqp091.Publishing{ContentType: "application/json", Body: body})
	if errors.Is(err, amqp091.ErrClosed) {
		<-c.ended // what closed it says more
		return c.err
	}
	return err
}

// Receive implements broker.PeerConn.
func (c *peerConn) Receive(ctx context.Context) ([]byte, error) {
	select {
	case <-c.ended:
		return nil, c.err
	default:
	}
	select {
	case d, ok := <-c.deliveries:
		if !ok {
			<-c.ended // what closed it ends the connection
			return nil, c.err
		}
		if err := d.Ack(false); err != nil && !errors.Is(err, amqp091.ErrClosed) {
			return nil, fmt.Errorf("acknowledge message of a peer: %w", err)
		}
		return d.Body, nil
	case <-c.ended:
		return nil, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close implements broker.PeerConn. Its error is always nil: a connection that cannot be closed politely is gone.
func (c *peerConn) Close() error {
	c.closeOnce.Do(func() { close(c.closing) })
	c.watching.Wait()
	return nil
}
