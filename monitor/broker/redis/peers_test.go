package redis_test

import (
	"testing"

	"github.com/umbelhq/umbel/monitor/broker/brokertest"
)

func TestPeersConformance(t *testing.T) {
	t.Parallel()
	brokertest.RunPeers(t, func(t *testing.T) brokertest.PeerFixture {
		t.Helper()
		o := options(t)
		p := newProxy(t, plain)
		o.URL = p.url(t, "redis")
		return brokertest.PeerFixture{Broker: newBroker(t, o), Break: func(*testing.T) { p.cut() }}
	})
}
