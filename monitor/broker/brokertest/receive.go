package brokertest

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker"
)

func (c streamTest) receiveInOrder() {
	s := c.connect()
	c.publish(0, 500)
	c.expectMessages(c.receive(s, 500), 0, false)
	c.expectNothing(s)
}

func (c streamTest) receiveProperties() {
	s := c.connect()
	tests := map[string]broker.Message{
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
		ctx, cancel := context.WithTimeout(c.Context(), timeout)
		err := c.Publish(ctx, want)
		cancel()
		if err != nil {
			c.Fatalf("publish %s message: %v", name, err)
		}
		got := c.receive(s, 1)[0]
		got.Tag = 0
		if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
			c.Errorf("%s message (-want +got):\n%s", name, diff)
		}
	}
}

func (c streamTest) receiveBatches() {
	const total = 4 * broker.MaxBatch
	s := c.connect()
	c.publish(0, total)
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	for n := 0; n < total; {
		batch, err := s.Receive(ctx)
		if err != nil {
			c.Fatalf("receive after %d of %d messages: %v", n, total, err)
		}
		if got := len(batch); got == 0 || got > broker.MaxBatch {
			c.Fatalf("received %d messages at once, want 1 to %d", got, broker.MaxBatch)
		}
		n += len(batch)
	}
}

func (c streamTest) receiveLone() {
	s := c.connect()
	c.publish(0, 1)
	start := time.Now()
	c.expectMessages(c.receive(s, 1), 0, false)
	// Far more than MaxBatchDelay, for slow machines, and far less than forever.
	if got, limit := time.Since(start), time.Minute; got > limit {
		c.Errorf("lone message took %v, want at most %v", got, limit)
	}
}

func (c streamTest) receiveContext() {
	s := c.connect()
	ended, cancel := context.WithCancel(c.Context())
	cancel()
	if _, err := s.Receive(ended); !errors.Is(err, context.Canceled) {
		c.Errorf("receive with an ended context: error %v, want %v", err, context.Canceled)
	}
	c.expectNothing(s)

	waiting, cancel := context.WithCancel(c.Context())
	received := make(chan error, 1)
	go func() {
		_, err := s.Receive(waiting)
		received <- err
	}()
	cancel()
	err := c.within("Receive whose context ended", func() error { return <-received })
	if !errors.Is(err, context.Canceled) {
		c.Errorf("receive whose context ended: error %v, want %v", err, context.Canceled)
	}

	c.publish(0, 3)
	c.expectMessages(c.receive(s, 3), 0, false)
}
