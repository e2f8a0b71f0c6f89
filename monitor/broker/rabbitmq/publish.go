package rabbitmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/internal/dial"
	"github.com/umbelhq/umbel/monitor/broker"
)

// maxPublishChannels bounds the messages in flight on a control connection.
const maxPublishChannels = 16

// publishChannel is a channel in confirm mode with at most one message in flight. So whatever the broker sends on
// it, a returned message or an error that closes the channel, is about that message.
type publishChannel struct {
	channel  *amqp091.Channel
	returned <-chan amqp091.Return
	closed   <-chan *amqp091.Error
}

// Request implements broker.ControlConn.
func (c *controlConn) Request(ctx context.Context, m broker.Publishing) (int, error) {
	exchange := c.broker.options.pidbox()
	if err := c.send(ctx, exchange, "", m); err != nil {
		return 0, fmt.Errorf("publish to exchange %q: %w", exchange, err)
	}
	return -1, nil
}

// Publish implements broker.ControlConn.
func (c *controlConn) Publish(ctx context.Context, queue string, m broker.Publishing) error {
	if err := c.send(ctx, "", queue, m); err != nil {
		return fmt.Errorf("publish to queue %q: %w", queue, err)
	}
	return nil
}

// PublishEvent implements broker.ControlConn.
func (c *controlConn) PublishEvent(ctx context.Context, routingKey string, m broker.Publishing) error {
	if err := c.send(ctx, c.broker.options.Exchange, routingKey, m); err != nil {
		return fmt.Errorf("publish event to exchange %q: %w", c.broker.options.Exchange, err)
	}
	return nil
}

// send publishes m and waits until the broker confirms it. What goes to the anonymous exchange must reach a queue.
func (c *controlConn) send(ctx context.Context, exchange, key string, m broker.Publishing) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	message, err := sendable(m, key)
	if err != nil {
		return err
	}
	if why := c.blocked.Load(); why != nil {
		return blockedError(*why)
	}
	select {
	case c.slots <- struct{}{}:
	case <-c.ended:
		return c.err
	case <-ctx.Done():
		return c.timedOut(ctx)
	}
	done := make(chan error, 1)
	if err := c.start(func() {
		defer func() { <-c.slots }()
		done <- c.publish(exchange, key, message)
	}); err != nil {
		<-c.slots
		return err
	}
	select {
	case err := <-done:
		return err
	case <-c.ended:
		return c.err
	case <-ctx.Done():
		return c.timedOut(ctx)
	}
}

func blockedError(why string) error {
	return fmt.Errorf("the broker takes no messages for now: %s", why)
}

// timedOut says what a message was waiting for when ctx ended.
func (c *controlConn) timedOut(ctx context.Context) error {
	if why := c.blocked.Load(); why != nil {
		return fmt.Errorf("%w: %w", blockedError(*why), ctx.Err())
	}
	return fmt.Errorf("no confirmation from the broker: %w", ctx.Err())
}

// publish sends one message on a publish channel of its own and waits for the broker's confirmation.
func (c *controlConn) publish(exchange, key string, m amqp091.Publishing) error {
	o, err := c.publishChannel()
	if err != nil {
		return c.explainSend(err)
	}
	confirmation, err := o.channel.PublishWithDeferredConfirm(exchange, key, exchange == "", false, m)
	if err != nil {
		_ = o.channel.Close()
		return c.explainSend(err)
	}
	<-confirmation.Done()
	if !confirmation.Acked() && o.channel.IsClosed() {
		if cause, ok := <-o.closed; ok { // sent before the confirmations are given up
			return c.explainSend(cause)
		}
		return c.explainSend(amqp091.ErrClosed)
	}
	c.mu.Lock()
	c.channels = append(c.channels, o)
	c.mu.Unlock()
	if !confirmation.Acked() {
		return errors.New("the broker could not take the message")
	}
	select {
	case r, ok := <-o.returned: // sent before the confirmation, which is positive all the same
		if ok {
			return fmt.Errorf("%w (%s)", broker.ErrNoQueue, r.ReplyText)
		}
	default:
	}
	return nil
}

// publishChannel returns a channel that is not in use, a new one if there is none.
func (c *controlConn) publishChannel() (*publishChannel, error) {
	if o := c.idle(); o != nil {
		return o, nil
	}
	ch, err := c.publishing.Channel()
	if err != nil {
		return nil, fmt.Errorf("open channel: %w", err)
	}
	o := &publishChannel{
		channel:  ch,
		returned: ch.NotifyReturn(make(chan amqp091.Return, 1)),
		closed:   ch.NotifyClose(make(chan *amqp091.Error, 1)),
	}
	if err := ch.Confirm(false); err != nil {
		_ = ch.Close()
		return nil, fmt.Errorf("ask for confirmation: %w", err)
	}
	return o, nil
}

// idle takes a publish channel that is not in use, the one used last, nil if there is none.
func (c *controlConn) idle() *publishChannel {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.channels) > 0 {
		o := c.channels[len(c.channels)-1]
		c.channels = c.channels[:len(c.channels)-1]
		if !o.channel.IsClosed() {
			return o
		}
	}
	return nil
}

// explainSend says what an error of the connection or of a publish channel means for a message.
func (c *controlConn) explainSend(err error) error {
	refusal, ok := errors.AsType[*amqp091.Error](err)
	switch {
	case c.publishing.IsClosed():
		return fmt.Errorf("%w: %w", broker.ErrClosed, err)
	case !ok:
		return err
	case refusal.Code == amqp091.AccessRefused:
		return &dial.HintError{
			Message: fmt.Sprintf("%v: %s; user %q needs write permission on it", broker.ErrRefused, reason(refusal),
				c.endpoint.user),
			Err: errors.Join(broker.ErrRefused, err),
		}
	case refusal.Code == amqp091.NotFound: // somebody deleted the exchange: the next control connection declares it
		c.closeOnce.Do(func() { close(c.closing) })
		return fmt.Errorf("%w: %w", broker.ErrClosed, err)
	case refusal.Code == amqp091.PreconditionFailed: // message size 9 is larger than configured max size 8
		return &dial.HintError{
			Message: fmt.Sprintf("%v: %s", broker.ErrRefused, reason(refusal)),
			Err:     errors.Join(broker.ErrRefused, err),
		}
	}
	return err
}
