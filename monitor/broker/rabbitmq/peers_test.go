package rabbitmq_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/brokertest"
	"github.com/umbelhq/umbel/monitor/broker/rabbitmq"
)

func TestPeersConformance(t *testing.T) {
	t.Parallel()
	brokertest.RunPeers(t, func(t *testing.T) brokertest.PeerFixture {
		t.Helper()
		o := options(t)
		p := newProxy(t, plain)
		o.URL = p.url(t, "amqp")
		return brokertest.PeerFixture{Broker: peerBroker(t, o), Break: func(*testing.T) { p.cut() }}
	})
}

func peerBroker(t *testing.T, o rabbitmq.Options) *rabbitmq.Broker {
	t.Helper()
	b, err := rabbitmq.New(o)
	if err != nil {
		t.Fatalf("new broker: %v", err)
	}
	return b
}

func TestPeersPermissions(t *testing.T) {
	t.Parallel()
	o := options(t)
	user, password := o.Version, "se/cr@t"
	addUser(t, user, password)
	u, err := url.Parse(o.URL)
	if err != nil {
		t.Fatalf("parse the URL of the broker: %v", err)
	}
	u.User = url.UserPassword(user, password)
	o.URL = u.String()
	b := peerBroker(t, o)
	for _, step := range []struct{ configure, write, read, want string }{
		{"^$", "^$", "^$", "needs configure permission on it"},
		{"^umbel", "^$", "^$", "needs write permission on the queue and read permission on the exchange"},
	} {
		setPermissions(t, user, step.configure, step.write, step.read)
		_, err := b.OpenPeers(t.Context())
		expectError(t, err, password, step.want)
		if !errors.Is(err, broker.ErrRefused) {
			t.Errorf("error %q is not %v", err, broker.ErrRefused)
		}
	}
	// RabbitMQ refuses to publish after Publish has returned.
	setPermissions(t, user, "^umbel", "^umbel.peers.[a-z0-9]{26}$", "^umbel")
	p, err := b.OpenPeers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if err := p.Publish(soon(t), []byte("x")); err != nil {
		t.Fatal(err)
	}
	_, err = p.Receive(soon(t))
	expectError(t, err, password, "refused by the broker", "needs write permission on exchange")
}
