// Package remote holds conversations with workers by Celery's remote control (pidbox): it asks, gathers the replies
// and says who did not answer. It keeps one line to the broker open for all of them, and task messages go the same
// way. It decides nothing about who may ask for what, and remembers no command.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
)

// ErrUnavailable says that there is no connection to the broker, so that nothing was sent. The cause is wrapped
// beside it.
var ErrUnavailable = errors.New("broker not connected")

// errNotYet is the cause before the first connection.
var errNotYet = errors.New("not dialled yet")

// Options of a Client. Broker is required.
type Options struct {
	Broker broker.Broker
	Now    func() time.Time // nil means time.Now
	Logger *slog.Logger     // nil discards
}

// Client talks to the workers of one cluster. It is safe for concurrent use.
type Client struct {
	broker broker.Broker
	now    func() time.Time
	log    *slog.Logger
	mask   masking

	mu         sync.Mutex       // guards what follows
	conn       *controlConn     // nil while there is no line
	connected  chan struct{}    // closed while there is a line, then replaced
	cause      error            // why there is none
	since      time.Time        // of the last change between the two
	calls      map[string]*Call // by ticket
	duplicates duplicates
	unmatched  uint64
	malformed  uint64
}

// link is one line and its end.
type controlConn struct {
	broker.ControlConn
	lost chan struct{} // closed when the line is
}

// New validates o and starts nothing.
func New(o Options) (*Client, error) {
	if o.Broker == nil {
		return nil, errors.New("control client needs a broker")
	}
	c := &Client{
		broker:    o.Broker,
		now:       o.Now,
		log:       cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		mask:      newMasking(),
		connected: make(chan struct{}),
		cause:     errNotYet,
		calls:     make(map[string]*Call),
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c, nil
}

// Broadcast sends a command without arguments to every worker and wants no reply. It waits for the line until ctx ends.
func (c *Client) Broadcast(ctx context.Context, method string) error {
	m, err := celery.Request{Method: method}.Publishing()
	if err != nil {
		return err
	}
	for {
		l, err := c.await(ctx)
		if err != nil {
			return fmt.Errorf("broadcast %s: %w", method, err)
		}
		_, err = l.Request(ctx, m)
		if err == nil {
			return nil
		}
		if !errors.Is(err, broker.ErrClosed) {
			return fmt.Errorf("broadcast %s: %w", method, err)
		}
		select {
		case <-l.lost:
		case <-ctx.Done():
			return fmt.Errorf("broadcast %s: %w", method, err)
		}
	}
}

// Publish sends a task message to a queue, as broker.Line does. It is ErrUnavailable without a line.
func (c *Client) Publish(ctx context.Context, queue string, m broker.Publishing) error {
	l, err := c.current()
	if err != nil {
		return err
	}
	return l.Publish(ctx, queue, m)
}

// Event publishes an event, as broker.Line does.
func (c *Client) PublishEvent(ctx context.Context, routingKey string, m broker.Publishing) error {
	l, err := c.current()
	if err != nil {
		return err
	}
	return l.PublishEvent(ctx, routingKey, m)
}

// Purge empties a queue, as broker.Line does.
func (c *Client) Purge(ctx context.Context, queue string) (int64, error) {
	l, err := c.current()
	if err != nil {
		return 0, err
	}
	return l.Purge(ctx, queue)
}

// Peek shows what waits in a queue, as broker.Line does.
func (c *Client) Peek(ctx context.Context, queue string, limit int) ([]broker.Publishing, error) {
	l, err := c.current()
	if err != nil {
		return nil, err
	}
	return l.Peek(ctx, queue, limit)
}

// Find looks for the message of a task, as broker.Line does.
func (c *Client) Find(ctx context.Context, queues []string, taskID string) (*broker.Publishing, error) {
	l, err := c.current()
	if err != nil {
		return nil, err
	}
	return l.Find(ctx, queues, taskID)
}

// Survey looks at queues, as broker.Line does.
func (c *Client) QueueStats(ctx context.Context, queues []string) (broker.QueueStats, error) {
	l, err := c.current()
	if err != nil {
		return broker.QueueStats{}, err
	}
	return l.QueueStats(ctx, queues)
}

// Status of the line.
type Status struct {
	Connected bool
	Since     time.Time // of the last change, zero before the first
	LastError string    // without passwords, empty while connected
	// Strays are replies that nobody waited for, most of them too late; Garbled are messages that were no replies.
	Unmatched, Malformed uint64
}

// Status says whether there is a line.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Connected: c.conn != nil, Since: c.since, Unmatched: c.unmatched, Malformed: c.malformed}
	if c.conn == nil {
		s.LastError = c.mask.text(c.cause.Error())
	}
	return s
}
