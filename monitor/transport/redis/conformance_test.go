package redis_test

import (
	"testing"

	"github.com/umbelhq/umbel/monitor/transport/transporttest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	transporttest.Run(t, fixture)
}

// fixture is a broker behind a proxy that can lose its connections.
func fixture(t *testing.T) transporttest.Fixture {
	t.Helper()
	o := options(t)
	c := dial(t, o)
	p := newProxy(t, plain)
	o.URL = p.url(t, "redis")
	return transporttest.Fixture{
		Broker:  newBroker(t, o),
		Publish: publisher(c, o.KeyPrefix+"/0.celeryev"),
		Break:   func(*testing.T) { p.cut() },
	}
}
