package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/umbelhq/umbel/internal/dial"
	"github.com/umbelhq/umbel/monitor/broker"
)

// peerConn subscribes to a channel with one socket, and publishes with others.
type peerConn struct {
	broker   *Broker
	conn     *conn
	in       *respReader
	channel  string
	messages chan []byte
	stop     context.CancelFunc // of the pings
	wg       sync.WaitGroup

	once  sync.Once
	ended chan struct{} // closed after err was set
	err   error
}

// OpenPeers implements broker.PeerBroker. It tries the broker's addresses in turn, each for at most Options.DialTimeout.
func (b *Broker) OpenPeers(ctx context.Context) (broker.PeerConn, error) {
	return first(ctx, b, b.openPeers)
}

func (b *Broker) openPeers(ctx context.Context, l *conn) (broker.PeerConn, error) {
	in, err := newRESPReader(ctx, l, 2*b.options.HealthCheck)
	if err != nil {
		return nil, err
	}
	channel := l.keys.prefix + l.keys.fanout + "umbel.peers." + b.options.ControlExchange
	if err := in.subscribe([]string{glob(channel)}); err != nil {
		return nil, permission(l.endpoint, err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &peerConn{
		broker: b, conn: l, in: in, channel: channel, messages: make(chan []byte, broker.MaxPeerBacklog), stop: stop, ended: make(chan struct{}),
	}
	c.wg.Go(c.read)
	c.wg.Go(func() { c.keep(running) })
	return c, nil
}

// permission returns err, as broker.ErrRefused if a permission is missing.
func permission(e endpoint, err error) error {
	if code(err) != "NOPERM" {
		return err
	}
	return &dial.HintError{Message: explainRefusal(e, err), Err: errors.Join(broker.ErrRefused, err)}
}

// end ends c once.
func (c *peerConn) end(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.ended)
		c.stop()
		_ = c.in.conn.Close()
	})
}

func (c *peerConn) read() {
	for {
		kind, payload, fits, err := c.in.next()
		switch {
		case err != nil:
			c.end(lost(err))
			return
		case kind != kindMessage || !fits:
			continue
		}
		select {
		case c.messages <- bytes.Clone(payload):
		case <-c.ended:
			return
		default: // one that is missing would be noticed later
			c.end(fmt.Errorf("%w: more than %d messages of peers wait", broker.ErrClosed, broker.MaxPeerBacklog))
			return
		}
	}
}

// keep ends c when its connection is lost.
func (c *peerConn) keep(ctx context.Context) {
	if err := c.broker.ping(ctx, c.in, c.conn.endpoint); err != nil {
		c.end(lost(err))
	}
}

// Publish implements broker.PeerConn.
func (c *peerConn) Publish(ctx context.Context, body []byte) error {
	select {
	case <-c.ended:
		return c.err
	default:
	}
	err := c.conn.client.Publish(ctx, c.channel, body).Err()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case code(err) == "NOPERM":
		return permission(c.conn.endpoint, err)
	}
	c.end(lost(err))
	<-c.ended
	return c.err
}

// Receive implements broker.PeerConn.
func (c *peerConn) Receive(ctx context.Context) ([]byte, error) {
	select {
	case <-c.ended:
		return nil, c.err
	default:
	}
	select {
	case body := <-c.messages:
		return body, nil
	case <-c.ended:
		return nil, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close implements broker.PeerConn. Its error is always nil: a connection that cannot be closed politely is gone.
func (c *peerConn) Close() error {
	c.end(broker.ErrClosed)
	c.conn.close()
	c.wg.Wait()
	return nil
}
