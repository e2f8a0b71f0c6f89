package dashboard

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/rabbitmq"
	"github.com/umbelhq/umbel/monitor/broker/redis"
)

// Broker returns the broker that o.BrokerURL names. It connects nowhere yet.
func Broker(o Options) (broker.Broker, error) {
	if o.BrokerURL == "" {
		return nil, errors.New("no broker URL")
	}
	scheme, _, ok := strings.Cut(o.BrokerURL, "://")
	if !ok || strings.ContainsAny(scheme, ":@") { // what is before it could be a password
		return nil, errors.New("the broker URL has no scheme: it begins with amqp://, amqps://, redis:// or rediss://")
	}
	switch strings.ToLower(strings.TrimSpace(scheme)) {
	case "amqp", "amqps", "pyamqp":
		return newRabbitMQ(o)
	case "redis", "rediss", "redis+socket", "sentinel":
		return newRedis(o)
	}
	return nil, fmt.Errorf("brokers of scheme %s:// are not supported: use amqp://, amqps://, redis://, rediss://, "+
		"redis+socket:// or sentinel://", scheme)
}

func newRabbitMQ(o Options) (broker.Broker, error) {
	if !reflect.ValueOf(o.Redis).IsZero() {
		return nil, errors.New("options of Redis need a URL of Redis")
	}
	b, err := rabbitmq.New(rabbitmq.Options{
		URL: o.BrokerURL, Queue: nodeQueue(o), Expires: o.QueueExpires, TLS: o.TLS,
		Exchange: o.Exchange, ControlExchange: o.ControlExchange, ManagementURL: o.ManagementURL, Version: o.Version,
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

func newRedis(o Options) (broker.Broker, error) {
	if o.Queue != "" {
		return nil, errors.New("a queue for events needs RabbitMQ: Redis keeps no events while nobody listens")
	}
	if o.ManagementURL != "" {
		return nil, errors.New("the management API is RabbitMQ's, and the broker is Redis")
	}
	r := o.Redis
	r.URL, r.TLS, r.Exchange, r.ControlExchange, r.Version = o.BrokerURL, o.TLS, o.Exchange, o.ControlExchange, o.Version
	b, err := redis.New(r)
	if err != nil {
		return nil, err
	}
	return b, nil
}
