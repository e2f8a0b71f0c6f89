package sqldb

import (
	"context"
	"net"
	"time"
)

// silence is how long a server may take to connect, and for each answer. lib/pq waits for an answer whatever the context, so
// that without a limit a server that is there and silent would block whoever asks, and shutdown.
const silence = 5 * time.Second

// dialer implements pq.Dialer and pq.DialerContext.
type dialer struct{}

// Dial connects.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout connects within a time.
func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// DialContext connects until ctx ends.
func (dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: silence}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn is a connection that breaks if it is silent. It is not used concurrently but for Close.
type conn struct {
	net.Conn

	deadline time.Time // what lib/pq has set, such as for connect_timeout; zero for none
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(at time.Time) error {
	c.deadline = at
	return c.Conn.SetDeadline(at)
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(c.limit()); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(c.limit()); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// limit is when the next answer is too late.
func (c *conn) limit() time.Time {
	at := time.Now().Add(silence)
	if !c.deadline.IsZero() && c.deadline.Before(at) {
		return c.deadline
	}
	return at
}
