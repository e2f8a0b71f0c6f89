package rabbitmq

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	prefetch           = 8192 // unacknowledged events that the broker sends ahead
	defaultMaxLength   = 1_000_000
	defaultExpires     = 24 * time.Hour
	minExpires         = time.Second
	maxExpires         = (1<<32 - 1) * time.Millisecond // RabbitMQ's own limit
	transientExpires   = time.Minute
	defaultDialTimeout = 10 * time.Second
	maxNameBytes       = 255 // a short string of AMQP
)

// Options of a Broker. URL is required, everything else has a default.
type Options struct {
	// URL is where the broker is: amqp://user:password@host:5672/vhost, amqps:// for TLS, or Celery's
	// pyamqp://. What is left out is as Celery has it: guest, guest, localhost, 5672 (5671 for TLS) and
	// vhost "/". Special characters are percent-encoded. Several URLs, separated by semicolons, are
	// tried in turn. The query may hold heartbeat (seconds), and the TLS files under the names that
	// Kombu (ssl_ca_certs, ssl_certfile, ssl_keyfile, ssl_cert_reqs) or RabbitMQ's clients
	// (cacertfile, certfile, keyfile, server_name_indication, verify) know them by; the rest of it is
	// ignored.
	URL string
	// TLS says how to trust and be trusted by amqps:// URLs. Its fields win over the URL's query.
	TLS broker.TLS
	// Exchange is Celery's event_exchange, celeryev if empty.
	Exchange string
	// ControlExchange is Celery's control_exchange, celery if empty.
	ControlExchange string
	// Queue names a durable queue that is kept, and keeps events, while nobody is connected. One
	// event stream at a time may read it: when one is lost without being closed, the next is refused until the
	// broker has noticed, two to three heartbeats later. If Queue is empty, every event stream has a queue
	// of its own, which is gone with it. Events are transient messages: no queue keeps them over a
	// restart of the broker.
	Queue string
	// Expires is how long the broker keeps a named queue that nobody reads, 24 h if zero.
	Expires time.Duration
	// MaxLength is how many messages the queue holds before the broker drops the oldest, 1,000,000 if
	// zero. It keeps a stalled reader from filling the broker's memory.
	MaxLength int
	// ManagementURL is where RabbitMQ's management API is, such as http://user:password@host:15672: it reports
	// more about queues than AMQP does. Empty means that there is none. User and password are those of URL if it holds none; TLS
	// holds for https:// too.
	ManagementURL string
	// DialTimeout bounds each attempt to connect, 10 s if zero.
	DialTimeout time.Duration
	// Version of the program, shown by the broker as part of the connection's name.
	Version string
}

// withDefaults returns o with its zero values replaced, or an error about a value out of bounds.
func (o Options) withDefaults() (Options, error) {
	o.Exchange = cmp.Or(o.Exchange, "celeryev")
	o.ControlExchange = cmp.Or(o.ControlExchange, "celery")
	o.Expires = cmp.Or(o.Expires, defaultExpires)
	o.MaxLength = cmp.Or(o.MaxLength, defaultMaxLength)
	o.DialTimeout = cmp.Or(o.DialTimeout, defaultDialTimeout)
	switch {
	case o.Expires < minExpires || o.Expires > maxExpires:
		return o, fmt.Errorf("queue expiry %v is outside %v to %v", o.Expires, minExpires, maxExpires)
	case strings.HasPrefix(o.Queue, "amq."):
		return o, fmt.Errorf("queue name %q starts with amq., which the broker reserves: choose another", o.Queue)
	}
	for what, name := range map[string]string{
		"queue name": o.Queue, "event exchange name": o.Exchange, "control exchange name": o.pidbox(),
	} {
		if len(name) > maxNameBytes {
			return o, fmt.Errorf("%s is longer than %d bytes", what, maxNameBytes)
		}
	}
	return o, nil
}

// pidbox is the exchange that workers take commands from.
func (o Options) pidbox() string { return o.ControlExchange + ".pidbox" }

// arguments are those of the queue. A type is named because a vhost may have another default, and
// only classic queues can have one reader only; the overflow, so that no policy makes a full queue
// push back on the workers.
func (o Options) arguments() amqp091.Table {
	expires := transientExpires
	if o.Queue != "" {
		expires = o.Expires
	}
	return amqp091.Table{
		"x-queue-type": "classic",
		"x-expires":    expires.Milliseconds(),
		"x-max-length": int64(o.MaxLength),
		"x-overflow":   "drop-head",
	}
}

// transientName is a name that no other queue has.
func transientName() string { return "umbel." + strings.ToLower(rand.Text()) }
