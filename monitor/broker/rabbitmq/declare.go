package rabbitmq

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rabbitmq/amqp091-go"
)

// declaration declares exchanges and queues on a channel, and says what to do if the broker refuses one.
type declaration struct {
	channel *amqp091.Channel
	user    string
}

// exchange declares an exchange. conflict says what to do about one with other properties.
func (d declaration) exchange(name, kind string, durable bool, conflict string) error {
	err := d.channel.ExchangeDeclare(name, kind, durable, false, false, false, nil)
	return stepError(fmt.Sprintf("declare exchange %q", name), err, hints{
		amqp091.PreconditionFailed: conflict,
		amqp091.AccessRefused:      d.needs("configure permission on it"),
	})
}

// queue declares a queue and binds it to an exchange. One that is not named by the operator belongs to the connection
// alone.
func (d declaration) queue(name string, named bool, arguments amqp091.Table, key, exchange string) error {
	_, err := d.channel.QueueDeclare(name, named, !named, !named, false, arguments)
	if err != nil {
		return stepError(fmt.Sprintf("declare queue %q", name), err, hints{
			amqp091.PreconditionFailed: "the queue exists with other properties: delete it, or choose another --queue",
			amqp091.ResourceLocked:     "the queue belongs to another connection: choose another --queue",
			amqp091.AccessRefused:      d.needs("configure permission on it"),
		})
	}
	err = d.channel.QueueBind(name, key, exchange, false, nil)
	return stepError(fmt.Sprintf("bind queue %q to exchange %q", name, exchange), err, hints{
		amqp091.AccessRefused: d.needs("write permission on the queue and read permission on the exchange"),
	})
}

// consume starts reading a queue, which nobody else may read then: a second reader of a named queue is refused instead
// of taking every other event.
func (d declaration) consume(name string, prefetch int) (<-chan amqp091.Delivery, error) {
	if err := d.channel.Qos(prefetch, 0, false); err != nil {
		return nil, fmt.Errorf("set prefetch: %w", err)
	}
	deliveries, err := d.channel.Consume(name, "umbel", false, true, false, false, nil)
	hint := d.needs("read permission on it")
	if err != nil && strings.Contains(err.Error(), "exclusive use") {
		hint = "one Umbel at a time may read it: stop the other one, or choose another --queue"
	}
	return deliveries, stepError(fmt.Sprintf("read queue %q", name), err, hints{amqp091.AccessRefused: hint})
}

// needs is a hint about a permission.
func (d declaration) needs(permission string) string {
	return fmt.Sprintf("user %q needs %s", d.user, permission)
}

// events declares the event exchange.
func (d declaration) events(exchange string) error {
	return d.exchange(exchange, amqp091.ExchangeTopic, true,
		"Celery's event exchange is durable and of type topic: delete this one, or name the one that Celery uses")
}

// consume declares what s reads from, the event exchange and a queue bound to all of it, and starts reading.
func (b *Broker) consume(conn *amqp091.Connection, s *eventStream) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	d, o := declaration{ch, s.endpoint.user}, b.options
	if err := d.events(o.Exchange); err != nil {
		return err
	}
	name := cmp.Or(o.Queue, transientName())
	if err := d.queue(name, o.Queue != "", o.arguments(), "#", o.Exchange); err != nil {
		return err
	}
	s.queue, s.channel = name, ch
	lost, cancelled := ch.NotifyClose(make(chan *amqp091.Error, 1)), ch.NotifyCancel(make(chan string, 1))
	if s.deliveries, err = d.consume(name, prefetch); err != nil {
		return err
	}
	s.watching.Go(func() { s.watch(lost, cancelled) })
	return nil
}
