// Package redis reads Celery's events from Redis, and carries remote control and task messages over it as Kombu
// does. It is the only package that imports its client, never decodes an event, and never redials by itself.
package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/umbelhq/umbel/internal/dial"
	"github.com/umbelhq/umbel/monitor/broker"
)

// Broker is Redis at an address. It holds no connection itself and is safe for concurrent use.
type Broker struct {
	options   Options
	endpoints []endpoint
}

// New checks o and connects nowhere. Its errors are one sentence and never contain a password.
func New(o Options) (*Broker, error) {
	endpoints, err := parseURLs(o.URL)
	if err != nil {
		return nil, err
	}
	for i := range endpoints {
		e := &endpoints[i]
		if o.TLS != (broker.TLS{}) {
			if e.network == "unix" || !e.secure && len(e.sentinels) == 0 {
				return nil, fmt.Errorf("TLS options need a rediss:// or sentinel:// URL, and %s is not one", e)
			}
			e.secure = true
		}
		e.tls = e.tls.Override(o.TLS)
		if _, err := e.tls.Config(""); err != nil {
			return nil, err
		}
		if len(e.sentinels) > 0 && o.MasterName == "" {
			return nil, errors.New("sentinel:// needs the name of the master: it is master_name of Celery's " +
				"broker_transport_options")
		}
	}
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	return &Broker{options: o, endpoints: endpoints}, nil
}

// String returns the broker's URLs with their passwords masked, separated by semicolons.
func (b *Broker) String() string {
	urls := make([]string, len(b.endpoints))
	for i, e := range b.endpoints {
		urls[i] = e.String()
	}
	return strings.Join(urls, ";")
}

// Ephemeral implements broker.Ephemeral: Redis passes on what is published and keeps none of it.
func (b *Broker) Ephemeral() bool { return true }

// Subscribe tries the broker's addresses in turn, each for at most Options.DialTimeout, and subscribes to events at
// the first that lets it.
func (b *Broker) Subscribe(ctx context.Context) (broker.EventStream, error) {
	return first(ctx, b, b.openStream)
}

// OpenControl tries the broker's addresses like Subscribe.
func (b *Broker) OpenControl(ctx context.Context) (broker.ControlConn, error) {
	return first(ctx, b, b.openConn)
}

// first returns what use makes of the first address that it can be made of.
func first[T any](ctx context.Context, b *Broker, use func(context.Context, *conn) (T, error)) (T, error) {
	return dial.FirstOf(ctx, b.endpoints, func(ctx context.Context, e endpoint) (T, error) { return connect(ctx, b, e, use) })
}

// connect connects to e for use; both are cut short when ctx or the dial timeout ends.
func connect[T any](ctx context.Context, b *Broker, e endpoint, use func(context.Context, *conn) (T, error)) (T, error) {
	var none T
	limited, cancel := context.WithTimeout(ctx, b.options.DialTimeout)
	defer cancel()
	if len(e.sentinels) > 0 {
		address, err := b.master(limited, e)
		if err != nil {
			return none, connectError(limited, e, err)
		}
		e.address = address
	}
	l := newConn(b, e)
	// The client minds deadlines, but not the end of a context: what waits on a socket ends when the socket does.
	release := context.AfterFunc(limited, l.abort)
	defer release()
	v, err := use(limited, l)
	if err == nil && !release() {
		err = limited.Err()
	}
	if err != nil {
		l.close()
		return none, connectError(limited, e, err)
	}
	l.settle()
	return v, nil
}
