// Package rabbitmq reads Celery's events from RabbitMQ over AMQP 0.9.1, carries remote control and task messages, and looks
// at queues, by the management API where there is one. It never consumes from a task queue, declares none, decodes no
// message, and never redials by itself.
package rabbitmq

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/internal/dial"
	"github.com/umbelhq/umbel/monitor/broker"
)

// closeTimeout bounds the polite end of a connection.
const closeTimeout = 2 * time.Second

// Broker is RabbitMQ at one or more addresses. It holds no connection itself and is safe for
// concurrent use.
type Broker struct {
	options    Options
	endpoints  []endpoint
	management *managementURL // nil if there is none
}

// New checks o and connects nowhere. Its errors are one sentence and never contain a password.
func New(o Options) (*Broker, error) {
	endpoints, err := parseURLs(o.URL)
	if err != nil {
		return nil, err
	}
	for i := range endpoints {
		e := &endpoints[i]
		if o.TLS != (broker.TLS{}) && !e.secure {
			return nil, fmt.Errorf("TLS options need an amqps:// URL, and %s is not one", e)
		}
		e.tls = e.tls.Override(o.TLS)
		if _, err := e.tls.Config(e.host); err != nil {
			return nil, err
		}
	}
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	b := &Broker{options: o, endpoints: endpoints}
	if o.ManagementURL != "" {
		if b.management, err = parseManagementURL(o.ManagementURL, endpoints[0]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// String returns the broker's URLs with their passwords masked, separated by semicolons.
func (b *Broker) String() string {
	urls := make([]string, len(b.endpoints))
	for i, e := range b.endpoints {
		urls[i] = e.String()
	}
	return strings.Join(urls, ";")
}

// Ephemeral implements broker.Ephemeral: a queue without a name goes with its event stream.
func (b *Broker) Ephemeral() bool { return b.options.Queue == "" }

// Subscribe tries the broker's addresses in turn, each for at most Options.DialTimeout. At the first
// that lets it, it declares the event exchange and the queue, and starts consuming.
func (b *Broker) Subscribe(ctx context.Context) (broker.EventStream, error) {
	return dial.FirstOf(ctx, b.endpoints, b.openStream)
}

func (b *Broker) openStream(ctx context.Context, e endpoint) (broker.EventStream, error) {
	s := newEventStream(e)
	conn, err := b.open(ctx, e, func(conn *amqp091.Connection) error { return b.consume(conn, s) })
	if err != nil {
		return nil, err
	}
	s.conn = conn
	return s, nil
}

// open dials e and calls use with the connection; both are cut short when ctx or the dial timeout
// ends. The caller closes the connection.
func (b *Broker) open(
	ctx context.Context, e endpoint, use func(*amqp091.Connection) error,
) (*amqp091.Connection, error) {
	limited, cancel := context.WithTimeout(ctx, b.options.DialTimeout)
	defer cancel()
	socket, err := dial.Conn(limited, "tcp", e.address(), e.secure, e.tls, e.host)
	if err != nil {
		return nil, connectError(limited, e, err)
	}
	// amqp091 knows no contexts: what waits on the socket ends when the socket does.
	release := context.AfterFunc(limited, func() { _ = socket.Close() })
	defer release()
	conn, err := amqp091.Open(socket, b.config(e))
	if err != nil {
		_ = socket.Close()
		return nil, connectError(limited, e, err)
	}
	if err := use(conn); err != nil {
		_ = conn.CloseDeadline(time.Now().Add(closeTimeout))
		return nil, connectError(limited, e, err)
	}
	if !release() {
		return nil, connectError(limited, e, limited.Err())
	}
	return conn, nil
}

func (b *Broker) config(e endpoint) amqp091.Config {
	return amqp091.Config{
		SASL:      []amqp091.Authentication{&amqp091.PlainAuth{Username: e.user, Password: e.password}},
		Vhost:     e.vhost,
		Heartbeat: e.heartbeat,
		Locale:    "en_US",
		Properties: amqp091.Table{
			"product":         "Umbel",
			"version":         b.options.Version,
			"connection_name": strings.TrimSpace("umbel " + b.options.Version),
		},
	}
}
