package sharedbroker

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/umbelhq/umbel/monitor/broker"
)

// controlConn implements broker.ControlConn.
type controlConn struct {
	*link[broker.Publishing]

	broker *Broker
	opened opened
}

// OpenControl implements broker.Broker.
func (b *Broker) OpenControl(ctx context.Context) (broker.ControlConn, error) {
	c := &controlConn{broker: b}
	var err error
	if c.link, err = open[broker.Publishing](ctx, b, "/control", maxReplies, true, &c.opened); err != nil {
		return nil, err
	}
	return c, nil
}

// call calls a method in the other process.
func (c *controlConn) call(ctx context.Context, in call) (out answer, err error) {
	if err := errors.Join(c.Err(), ctx.Err()); err != nil {
		return out, err
	}
	body, err := c.broker.do(ctx, http.MethodPost, "/control/"+c.opened.Key, in)
	if err != nil {
		return out, err
	}
	defer func() { _ = body.Close() }()
	if err := decode(body, &out); err != nil {
		return out, fmt.Errorf("read what the broker answers: %w", err)
	}
	exact(out.Message)
	for i := range out.Messages {
		exact(&out.Messages[i])
	}
	return out, nil
}

// Request implements broker.ControlConn.
func (c *controlConn) Request(ctx context.Context, m broker.Publishing) (int, error) {
	out, err := c.call(ctx, call{Method: "request", Message: m})
	return int(out.N), err
}

// ReplyTo implements broker.ControlConn.
func (c *controlConn) ReplyTo() broker.ReplyTo { return c.opened.ReplyTo }

// ReceiveReply implements broker.ControlConn.
func (c *controlConn) ReceiveReply(ctx context.Context) (broker.Publishing, error) {
	m, err := c.receive(ctx)
	exact(&m)
	return m, err
}

// Publish implements broker.ControlConn.
func (c *controlConn) Publish(ctx context.Context, queue string, m broker.Publishing) error {
	_, err := c.call(ctx, call{Method: "publish", Queue: queue, Message: m})
	return err
}

// PublishEvent implements broker.ControlConn.
func (c *controlConn) PublishEvent(ctx context.Context, routingKey string, m broker.Publishing) error {
	_, err := c.call(ctx, call{Method: "event", RoutingKey: routingKey, Message: m})
	return err
}

// QueueStats implements broker.ControlConn.
func (c *controlConn) QueueStats(ctx context.Context, queues []string) (broker.QueueStats, error) {
	out, err := c.call(ctx, call{Method: "stats", Queues: queues})
	return out.Stats, err
}

// Purge implements broker.ControlConn.
func (c *controlConn) Purge(ctx context.Context, queue string) (int64, error) {
	out, err := c.call(ctx, call{Method: "purge", Queue: queue})
	return out.N, err
}

// Peek implements broker.ControlConn.
func (c *controlConn) Peek(ctx context.Context, queue string, limit int) ([]broker.Publishing, error) {
	out, err := c.call(ctx, call{Method: "peek", Queue: queue, Limit: limit})
	return out.Messages, err
}

// Find implements broker.ControlConn.
func (c *controlConn) Find(ctx context.Context, queues []string, taskID string) (*broker.Publishing, error) {
	out, err := c.call(ctx, call{Method: "find", Queues: queues, TaskID: taskID})
	return out.Message, err
}
