package sqldb

import (
	"context"
	"net"
	"sync"
	"time"
)

// silence is how long a server may take to connect, and for each answer: without a limit a server that is there and silent would
// block whoever asks without a timeout of their own, such as for a rollback.
const silence = 5 * time.Second

// dial connects until ctx ends.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: silence}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

// conn is a connection that breaks if it is silent.
type conn struct {
	net.Conn

	mu       sync.Mutex // pgx sets a deadline that has passed, from elsewhere, to end a Read or Write
	deadline time.Time  // what pgx has set; zero for none
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = at
	return c.Conn.SetDeadline(at)
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if err := c.limit(c.SetReadDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	if err := c.limit(c.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// limit sets when the next answer is too late.
func (c *conn) limit(set func(time.Time) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := time.Now().Add(silence)
	if !c.deadline.IsZero() && c.deadline.Before(at) {
		at = c.deadline
	}
	return set(at)
}
