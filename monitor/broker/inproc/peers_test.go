package inproc_test

import (
	"errors"
	"testing"

	"github.com/umbelhq/umbel/monitor/broker/brokertest"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
)

func TestPeersConformance(t *testing.T) {
	t.Parallel()
	brokertest.RunPeers(t, func(*testing.T) brokertest.PeerFixture {
		b := inproc.New(inproc.Options{})
		return brokertest.PeerFixture{Broker: b, Break: func(*testing.T) { b.Fail(errors.New("cable cut")) }}
	})
}
