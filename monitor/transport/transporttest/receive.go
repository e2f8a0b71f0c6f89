package transporttest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/transport"
)

func receiveInOrder(t *testing.T, f Fixture) {
	s := connect(t, f)
	publish(t, f, 0, 500)
	expectMessages(t, receive(t, s, 500), 0, false)
	expectNothing(t, s)
}

func receiveProperties(t *testing.T, f Fixture) {
	s := connect(t, f)
	tests := map[string]transport.Message{
		"json": {
			Body: []byte(`[{"type":"task-sent"}]`), ContentType: "application/json", ContentEncoding: "utf-8",
			RoutingKey: "task.multi",
		},
		"msgpack": {
			Body: []byte{0x81, 0x00, 0xff}, ContentType: "application/x-msgpack", ContentEncoding: "binary",
			RoutingKey: "worker.heartbeat",
		},
		"undeclared":   {Body: []byte("?"), RoutingKey: "task.sent"},
		"unknown type": {Body: []byte("x"), ContentType: "text/of the future", RoutingKey: "a.b.c.d"},
		"large":        {Body: bytes.Repeat([]byte("0123456789"), 100_000), RoutingKey: "task.multi"},
	}
	for name, want := range tests {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := f.Publish(ctx, want)
		cancel()
		if err != nil {
			t.Fatalf("publish %s message: %v", name, err)
		}
		got := receive(t, s, 1)[0]
		got.Tag = 0
		if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
			t.Errorf("%s message (-want +got):\n%s", name, diff)
		}
	}
}

func receiveBatches(t *testing.T, f Fixture) {
	const total = 4 * transport.MaxBatch
	s := connect(t, f)
	publish(t, f, 0, total)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for n := 0; n < total; {
		batch, err := s.Receive(ctx)
		if err != nil {
			t.Fatalf("receive after %d of %d messages: %v", n, total, err)
		}
		if got := len(batch); got == 0 || got > transport.MaxBatch {
			t.Fatalf("received %d messages at once, want 1 to %d", got, transport.MaxBatch)
		}
		n += len(batch)
	}
}

func receiveLone(t *testing.T, f Fixture) {
	s := connect(t, f)
	publish(t, f, 0, 1)
	start := time.Now()
	expectMessages(t, receive(t, s, 1), 0, false)
	// Far more than MaxGather, for slow machines, and far less than for ever.
	if got, limit := time.Since(start), patience/2; got > limit {
		t.Errorf("lone message took %v, want at most %v", got, limit)
	}
}

func receiveContext(t *testing.T, f Fixture) {
	s := connect(t, f)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Receive(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("receive with an ended context: error %v, want %v", err, context.Canceled)
	}
	expectNothing(t, s)

	waiting, cancel := context.WithCancel(t.Context())
	received := make(chan error, 1)
	go func() {
		_, err := s.Receive(waiting)
		received <- err
	}()
	cancel()
	err := within(t, "Receive whose context ended", func() error { return <-received })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("receive whose context ended: error %v, want %v", err, context.Canceled)
	}

	publish(t, f, 0, 3)
	expectMessages(t, receive(t, s, 3), 0, false)
}
