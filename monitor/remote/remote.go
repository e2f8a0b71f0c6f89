// Package remote calls workers by Celery's remote control (pidbox): it sends requests, gathers replies and reports
// who did not reply. It keeps one control connection to the broker open for all calls and for task messages. It
// does not decide who may send what, and remembers no command.
package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/redact"
)

// ErrUnavailable is returned when there is no connection to the broker, so that nothing was sent. The cause is
// wrapped beside it.
var ErrUnavailable = errors.New("broker not connected")

// errNotYet is the cause before the first connection.
var errNotYet = errors.New("not dialled yet")

// Options of a Client. Broker is required.
type Options struct {
	Broker   broker.Broker
	Redactor *redact.Redactor // takes secrets out of replies; nil has the defaults
	Logger   *slog.Logger     // nil discards
}

// Client calls the workers of one cluster. It is safe for concurrent use.
type Client struct {
	broker broker.Broker
	log    *slog.Logger
	redact *redact.Redactor

	mu         sync.Mutex       // guards what follows
	conn       *controlConn     // nil while there is no control connection
	connected  chan struct{}    // closed while there is a control connection, then replaced
	cause      error            // why there is none
	calls      map[string]*Call // by ticket
	duplicates duplicates
}

// controlConn is a control connection and its end.
type controlConn struct {
	broker.ControlConn
	lost chan struct{} // closed when the connection is lost
}

// New validates o and starts nothing.
func New(o Options) (*Client, error) {
	if o.Broker == nil {
		return nil, errors.New("control client needs a broker")
	}
	c := &Client{
		broker:    o.Broker,
		log:       cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		redact:    o.Redactor,
		connected: make(chan struct{}),
		cause:     errNotYet,
		calls:     make(map[string]*Call),
	}
	if c.redact == nil {
		c.redact = redact.Default()
	}
	return c, nil
}

// Redactor returns what takes secrets out of replies.
func (c *Client) Redactor() *redact.Redactor { return c.redact }

// Broadcast sends a command without arguments to every worker and wants no reply. It waits for the control
// connection until ctx ends.
func (c *Client) Broadcast(ctx context.Context, method string) error {
	m, err := celery.Request{Method: method}.Publishing()
	if err != nil {
		return err
	}
	for {
		conn, err := c.await(ctx)
		if err != nil {
			return fmt.Errorf("broadcast %s: %w", method, err)
		}
		_, err = conn.Request(ctx, m)
		if err == nil {
			return nil
		}
		if !errors.Is(err, broker.ErrClosed) {
			return fmt.Errorf("broadcast %s: %w", method, err)
		}
		select {
		case <-conn.lost:
		case <-ctx.Done():
			return fmt.Errorf("broadcast %s: %w", method, err)
		}
	}
}

// Publish sends a task message to a queue, as broker.ControlConn does. It is ErrUnavailable without a control connection.
func (c *Client) Publish(ctx context.Context, queue string, m broker.Publishing) error {
	conn, err := c.current()
	if err != nil {
		return err
	}
	return conn.Publish(ctx, queue, m)
}

// PublishEvent publishes an event, as broker.ControlConn does.
func (c *Client) PublishEvent(ctx context.Context, routingKey string, m broker.Publishing) error {
	conn, err := c.current()
	if err != nil {
		return err
	}
	return conn.PublishEvent(ctx, routingKey, m)
}

// Purge empties a queue, as broker.ControlConn does.
func (c *Client) Purge(ctx context.Context, queue string) (int64, error) {
	conn, err := c.current()
	if err != nil {
		return 0, err
	}
	return conn.Purge(ctx, queue)
}

// Peek returns messages that wait in a queue, as broker.ControlConn does.
func (c *Client) Peek(ctx context.Context, queue string, limit int) ([]broker.Publishing, error) {
	conn, err := c.current()
	if err != nil {
		return nil, err
	}
	return conn.Peek(ctx, queue, limit)
}

// Find looks for the message of a task, as broker.ControlConn does.
func (c *Client) Find(ctx context.Context, queues []string, taskID string) (*broker.Publishing, error) {
	conn, err := c.current()
	if err != nil {
		return nil, err
	}
	return conn.Find(ctx, queues, taskID)
}

// QueueStats returns statistics of queues, as broker.ControlConn does.
func (c *Client) QueueStats(ctx context.Context, queues []string) (broker.QueueStats, error) {
	conn, err := c.current()
	if err != nil {
		return broker.QueueStats{}, err
	}
	return conn.QueueStats(ctx, queues)
}

// QueueObjects returns queues as objects of the broker's API, as broker.QueueObjecter does.
func (c *Client) QueueObjects(ctx context.Context, queues []string) ([]json.RawMessage, error) {
	conn, err := c.current()
	if err != nil {
		return nil, err
	}
	if objecter, ok := conn.ControlConn.(broker.QueueObjecter); ok {
		return objecter.QueueObjects(ctx, queues)
	}
	return nil, broker.ErrUnsupported
}

// Connected reports whether there is a control connection.
func (c *Client) Connected() bool {
	_, err := c.current()
	return err == nil
}
