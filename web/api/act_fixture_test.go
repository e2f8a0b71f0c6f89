package api_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/alert/receivers"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/web/api"
)

// operating returns the operations on a cluster whose broker is away, since nobody runs them.
func operating(t *testing.T, b *backend, readOnly bool) *command.Service {
	t.Helper()
	o, err := command.New(command.Options{
		Client: controlClient(t, inproc.New(inproc.Options{})), Outbox: b.DB, Tasks: b, ReadOnly: readOnly, Outboxes: outboxes(t),
		Receivers: []receivers.Receiver{{Name: "ops", Webhook: "https://hooks.example/token"}},
		Now:       func() time.Time { return time.UnixMicro(start).UTC() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// options are those of an API by which people may act.
func options(t *testing.T, b *backend) api.Options {
	t.Helper()
	return api.Options{
		Backend: b, Commands: operating(t, b, false), Alerts: newAlerts(t), AppOutboxes: outboxes(t), Prefix: "/ops",
		Now: func() time.Time { return time.UnixMicro(start).UTC() },
	}
}

// controlClient returns a client of a broker that is not connected yet.
func controlClient(t testing.TB, b broker.Broker) *remote.Client {
	t.Helper()
	c, err := remote.New(remote.Options{Broker: b})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
