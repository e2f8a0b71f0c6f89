package api_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/operate"
	"github.com/umbelhq/umbel/web/api"
)

// operating returns the operations on a cluster whose broker is away, since nobody runs them.
func operating(t *testing.T, b *backend, readOnly bool) *operate.Operations {
	t.Helper()
	o, err := operate.New(operate.Options{
		Broker: inproc.New(inproc.Options{}), Store: b.Store(), Tasks: b, ReadOnly: readOnly,
		Now: func() time.Time { return time.UnixMicro(start).UTC() },
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
		Backend: b, Operations: operating(t, b, false), Prefix: "/ops",
		Now: func() time.Time { return time.UnixMicro(start).UTC() },
	}
}
