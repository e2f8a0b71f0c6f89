package rabbitmq

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rabbitmq/amqp091-go"
)

// consume declares what s reads from and starts reading.
func (b *Broker) consume(conn *amqp091.Connection, s *eventStream) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	if err := ch.Qos(b.options.Prefetch, 0, false); err != nil {
		return fmt.Errorf("set prefetch: %w", err)
	}
	name, err := b.declare(ch, s.endpoint)
	if err != nil {
		return err
	}
	s.queue = name
	s.channel = ch
	lost, cancelled := ch.NotifyClose(make(chan *amqp091.Error, 1)), ch.NotifyCancel(make(chan string, 1))
	// Exclusive, so that a second reader of a named queue is refused instead of taking every other
	// event.
	s.deliveries, err = ch.Consume(name, "umbel", false, true, false, false, nil)
	if err == nil {
		s.watching.Go(func() { s.watch(lost, cancelled) })
		return nil
	}
	hint := fmt.Sprintf("user %q needs read permission on it", s.endpoint.user)
	if strings.Contains(err.Error(), "exclusive use") {
		hint = "one Umbel at a time may read it: stop the other one, or choose another --queue"
	}
	return stepError(fmt.Sprintf("read queue %q", name), err, hints{amqp091.AccessRefused: hint})
}

// declareExchange declares the event exchange.
func (b *Broker) declareExchange(ch *amqp091.Channel, e endpoint) error {
	exchange := b.options.Exchange
	err := ch.ExchangeDeclare(exchange, amqp091.ExchangeTopic, true, false, false, false, nil)
	if err != nil {
		return stepError(fmt.Sprintf("declare exchange %q", exchange), err, hints{
			amqp091.PreconditionFailed: "Celery's event exchange is durable and of type topic: " +
				"delete this one, or name the one that Celery uses",
			amqp091.AccessRefused: fmt.Sprintf("user %q needs configure permission on it", e.user),
		})
	}
	return nil
}

// declare declares the event exchange and a queue bound to all of it, whose name it returns.
func (b *Broker) declare(ch *amqp091.Channel, e endpoint) (string, error) {
	if err := b.declareExchange(ch, e); err != nil {
		return "", err
	}
	o := b.options
	name, named := cmp.Or(o.Queue, transientName()), o.Queue != ""
	_, err := ch.QueueDeclare(name, named, !named, !named, false, o.arguments())
	if err != nil {
		return "", stepError(fmt.Sprintf("declare queue %q", name), err, hints{
			amqp091.PreconditionFailed: "the queue exists with other properties: delete it, or choose another --queue",
			amqp091.ResourceLocked:     "the queue belongs to another connection: choose another --queue",
			amqp091.AccessRefused:      fmt.Sprintf("user %q needs configure permission on it", e.user),
		})
	}
	if err := ch.QueueBind(name, "#", o.Exchange, false, nil); err != nil {
		return "", stepError(fmt.Sprintf("bind queue %q to exchange %q", name, o.Exchange), err, hints{
			amqp091.AccessRefused: fmt.Sprintf("user %q needs write permission on the queue and read permission on the exchange", e.user),
		})
	}
	return name, nil
}
