package inproc

import (
	"bytes"
	"context"
	"sync"

	"github.com/umbelhq/umbel/monitor/broker"
)

// OpenPeers implements broker.PeerBroker. It fails with the error given to Refuse.
func (b *Broker) OpenPeers(ctx context.Context) (broker.PeerConn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	refusal := b.refusal
	b.mu.Unlock()
	if refusal != nil {
		return nil, refusal
	}
	c := &peerConn{broker: b, messages: make(chan []byte, broker.MaxPeerBacklog), ended: make(chan struct{})}
	b.peersMu.Lock()
	defer b.peersMu.Unlock()
	b.peers[c] = struct{}{}
	return c, nil
}

// peerConn is a connection between peers. The peersMu of its Broker guards publishing, so that all receive in the same order.
type peerConn struct {
	broker   *Broker
	messages chan []byte
	once     sync.Once
	ended    chan struct{} // closed after err was set
	err      error
}

// end ends c once.
func (c *peerConn) end(err error) {
	c.once.Do(func() {
		c.err = err
		close(c.ended)
	})
}

// Publish implements broker.PeerConn.
func (c *peerConn) Publish(ctx context.Context, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.broker.peersMu.Lock()
	defer c.broker.peersMu.Unlock()
	if _, open := c.broker.peers[c]; !open {
		<-c.ended
		return c.err
	}
	for other := range c.broker.peers {
		select {
		case other.messages <- bytes.Clone(body):
		default: // lost
		}
	}
	return nil
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

// Close implements broker.PeerConn.
func (c *peerConn) Close() error {
	c.broker.peersMu.Lock()
	defer c.broker.peersMu.Unlock()
	delete(c.broker.peers, c)
	c.end(broker.ErrClosed)
	return nil
}

// failPeers ends all connections between peers.
func (b *Broker) failPeers(err error) {
	b.peersMu.Lock()
	defer b.peersMu.Unlock()
	for c := range b.peers {
		c.end(err)
	}
	clear(b.peers)
}
