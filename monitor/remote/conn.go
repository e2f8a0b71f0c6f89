package remote

import (
	"context"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/internal/retry"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
)

// Bounds of the wait before the broker is dialled again.
const (
	minRedial = 500 * time.Millisecond
	maxRedial = 5 * time.Second // commands wait meanwhile, and those to workers expire
)

// Run keeps a control connection to the broker open and hands replies to those who wait for them, until ctx ends. It returns nil.
func (c *Client) Run(ctx context.Context) error {
	for failures := 0; ctx.Err() == nil; failures++ {
		opened, err := c.broker.OpenControl(ctx)
		if err == nil {
			failures = 0
			err = c.readReplies(ctx, opened)
		}
		if ctx.Err() != nil {
			break
		}
		wait := retry.After(failures, minRedial, maxRedial)
		c.disconnected(err, wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return nil
}

// readReplies reads replies until the connection or ctx ends.
func (c *Client) readReplies(ctx context.Context, opened broker.ControlConn) error {
	conn := &controlConn{ControlConn: opened, lost: make(chan struct{})}
	c.mu.Lock()
	c.conn = conn
	close(c.connected)
	c.mu.Unlock()
	c.log.Info("control connection open", "url", c.broker.String())

	var err error
	for err == nil {
		var m broker.Publishing
		if m, err = opened.ReceiveReply(ctx); err == nil {
			c.deliver(m)
		}
	}

	c.mu.Lock()
	c.conn, c.cause = nil, err
	c.connected = make(chan struct{})
	close(conn.lost)
	c.mu.Unlock()
	if e := opened.Close(); e != nil {
		c.log.Debug("control connection did not close cleanly", "error", e)
	}
	return fmt.Errorf("receive replies: %w", err)
}

// disconnected records why there is no control connection.
func (c *Client) disconnected(cause error, wait time.Duration) {
	c.mu.Lock()
	c.cause = cause
	c.mu.Unlock()
	c.log.Warn("control connection not open", "url", c.broker.String(), "error", c.redact.SettingsText(cause.Error()),
		"retry_in_ms", wait.Milliseconds())
}

// deliver hands a reply to its call.
func (c *Client) deliver(m broker.Publishing) {
	at := time.Now()
	r, err := celery.ParseReply(m)
	if err != nil {
		c.log.Debug("message is no reply", "error", err)
		r.Undecodable = err.Error() // with a ticket, it is a reply that cannot be decoded
	}
	c.mu.Lock()
	call := c.calls[r.Ticket]
	c.mu.Unlock()
	var reply Reply
	if call != nil {
		reply = call.read(r, at)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case call != nil && c.calls[r.Ticket] == call:
		call.add(reply)
	case err == nil:
		c.duplicates.late(r.Ticket, r.Node, at)
	}
}

// current returns the control connection, or why there is none.
func (c *Client) current() (*controlConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, c.cause)
	}
	return c.conn, nil
}

// await waits for a control connection and returns it.
func (c *Client) await(ctx context.Context) (*controlConn, error) {
	for {
		c.mu.Lock()
		conn, connected, cause := c.conn, c.connected, c.cause
		c.mu.Unlock()
		if conn != nil {
			return conn, nil
		}
		select {
		case <-connected:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w: %w", ErrUnavailable, cause, ctx.Err())
		}
	}
}
