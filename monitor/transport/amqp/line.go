package amqp

import (
	"context"
	"errors"
	"fmt"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/monitor/transport"
)

// publish sends a request to the exchange of the workers' mailboxes and waits until the broker
// confirms it. Workers witness the clock, which 0 leaves as it is.
func (b *Broker) publish(ctx context.Context, conn *amqp091.Connection, e endpoint, body []byte) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	refused := ch.NotifyClose(make(chan *amqp091.Error, 1))
	blocked := conn.NotifyBlocked(make(chan amqp091.Blocking, 1))
	exchange := b.options.pidbox()
	err = ch.ExchangeDeclare(exchange, amqp091.ExchangeFanout, false, false, false, false, nil)
	if err != nil {
		return stepError(fmt.Sprintf("declare exchange %q", exchange), err, hints{
			amqp091.PreconditionFailed: "Celery's control exchange is not durable and of type fanout: " +
				"delete this one, or name the one that Celery uses",
			amqp091.AccessRefused: fmt.Sprintf("user %q needs configure permission on it", e.user),
		})
	}
	if err := ch.Confirm(false); err != nil {
		return fmt.Errorf("ask for confirmation: %w", err)
	}
	confirmation, err := ch.PublishWithDeferredConfirm(exchange, "", false, false, amqp091.Publishing{
		Headers:         amqp091.Table{"clock": int64(0), "expires": int64(0)},
		ContentType:     "application/json",
		ContentEncoding: "utf-8",
		DeliveryMode:    amqp091.Transient,
		Body:            body,
	})
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	select {
	case <-confirmation.Done():
	case state := <-blocked:
		if state.Active {
			return fmt.Errorf("broker takes no messages for now: %s", state.Reason)
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	if confirmation.Acked() {
		return nil
	}
	select {
	case err, ok := <-refused:
		if ok {
			return stepError(fmt.Sprintf("publish to exchange %q", exchange), err, hints{
				amqp091.AccessRefused: fmt.Sprintf("user %q needs write permission on it", e.user),
			})
		}
	default:
	}
	return errors.New("broker did not take the command")
}

// Open implements transport.Broker.
func (b *Broker) Open(context.Context) (transport.Line, error) {
	return nil, errors.New("not there yet")
}
