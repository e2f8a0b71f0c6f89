package rabbitmq_test

import (
	"testing"

	"github.com/umbelhq/umbel/monitor/broker/brokertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, named := range map[string]bool{"transient queue": false, "named queue": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brokertest.Run(t, func(t *testing.T) brokertest.Fixture {
				t.Helper()
				return fixture(t, named)
			})
		})
	}
}

// fixture is a broker behind a proxy that can lose its connections.
func fixture(t *testing.T, named bool) brokertest.Fixture {
	t.Helper()
	o := options(t)
	p := newProxy(t, plain)
	o.URL = p.url(t, "amqp")
	if named {
		o.Queue = o.Exchange + ".queue"
	}
	return brokertest.Fixture{
		Broker:     open(t, o),
		Publish:    publisher(t, o.Exchange),
		Break:      func(*testing.T) { p.cut() },
		Redelivers: named,
	}
}
