package broker

import "context"

const (
	// MaxPeerMessage is the greatest size of a message between peers, in bytes.
	MaxPeerMessage = 256 << 10
	// MaxPeerBacklog is how many messages may wait for a PeerConn that does not receive. Beyond it, messages are lost or
	// the connection ends.
	MaxPeerBacklog = 1000
)

// PeerBroker is implemented by a Broker that passes messages between the programs that watch the same Celery cluster.
type PeerBroker interface {
	// OpenPeers connects, and declares what that needs. Its error wraps ErrRefused if the user lacks a permission. ctx bounds the
	// call only.
	OpenPeers(ctx context.Context) (PeerConn, error)
}

// PeerConn is a connection over which every open one receives what any of them publishes. Messages of one arrive in the order
// of their publishing; none is kept for those who come later. Receive is called from one goroutine, the other methods from
// any. After its end every method returns ErrClosed.
type PeerConn interface {
	// Publish sends a message to all, its sender included. The broker may still lose it.
	Publish(ctx context.Context, body []byte) error
	// Receive waits for the next message, which the caller owns.
	Receive(ctx context.Context) ([]byte, error)
	// Close ends the connection. It may be called more than once.
	Close() error
}
