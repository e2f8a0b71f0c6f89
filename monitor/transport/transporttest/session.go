package transporttest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/transport"
)

func ackBounds(t *testing.T, f Fixture) {
	s := connect(t, f)
	publish(t, f, 0, 3)
	receive(t, s, 3)
	for _, tag := range []uint64{0, 2, 2, 1, 3, 3, 0} {
		if err := s.Ack(tag); err != nil {
			t.Errorf("acknowledge message %d of 3: %v", tag, err)
		}
	}
	if err := s.Ack(4); err == nil || errors.Is(err, transport.ErrClosed) {
		t.Errorf("acknowledge message 4 of 3: error %v, want one that does not end the session", err)
	}
	publish(t, f, 3, 1)
	if got, want := receive(t, s, 1)[0].Tag, uint64(4); got != want {
		t.Errorf("tag = %d, want %d", got, want)
	}
	if err := s.Ack(4); err != nil {
		t.Errorf("acknowledge message 4 of 4: %v", err)
	}
}

func ackUpTo(t *testing.T, f Fixture) {
	s := connect(t, f)
	publish(t, f, 0, 100)
	receive(t, s, 100)
	if err := s.Ack(60); err != nil {
		t.Fatalf("acknowledge 60 messages: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("close session: %v", err)
	}
	if !f.Redelivers {
		expectNothing(t, connect(t, f))
		return
	}
	s = connect(t, f)
	expectMessages(t, receive(t, s, 40), 60, true)
	if err := s.Ack(40); err != nil {
		t.Fatalf("acknowledge 40 messages: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("close session: %v", err)
	}
	expectNothing(t, connect(t, f))
}

func broadcast(t *testing.T, f Fixture) {
	s := connect(t, f)
	heard := f.Listen(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, want := range []transport.Command{
		{Method: "heartbeat"},
		{Method: "enable_events"},
		{Method: "rate_limit", Arguments: map[string]any{"task_name": "tasks.add", "rate_limit": "1/m"}},
	} {
		if err := s.Broadcast(ctx, want); err != nil {
			t.Fatalf("broadcast %s: %v", want.Method, err)
		}
		select {
		case got := <-heard:
			if len(got.Arguments) == 0 {
				got.Arguments = nil // null and {} mean the same to a worker
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
		case <-ctx.Done():
			t.Fatalf("command %s did not reach the listener", want.Method)
		}
	}
}

func broadcastContext(t *testing.T, f Fixture) {
	s := connect(t, f)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Broadcast(ended, transport.Command{Method: "heartbeat"}); !errors.Is(err, context.Canceled) {
		t.Errorf("broadcast with an ended context: error %v, want %v", err, context.Canceled)
	}
	publish(t, f, 0, 1)
	receive(t, s, 1)
}

func closeEnds(t *testing.T, f Fixture) {
	s := connect(t, f)
	publish(t, f, 0, 1)
	receive(t, s, 1)
	for range 3 {
		if err := within(t, "Close", s.Close); err != nil {
			t.Fatalf("close session: %v", err)
		}
	}
	_, err := s.Receive(t.Context())
	expectClosed(t, "Receive", err)
	expectClosed(t, "Ack", s.Ack(1))
	expectClosed(t, "Broadcast", s.Broadcast(t.Context(), transport.Command{Method: "heartbeat"}))
}

func closeWakes(t *testing.T, f Fixture) {
	s := connect(t, f)
	received := make(chan error, 1)
	go func() {
		_, err := s.Receive(context.WithoutCancel(t.Context()))
		received <- err
	}()
	if err := s.Close(); err != nil {
		t.Fatalf("close session: %v", err)
	}
	expectClosed(t, "Receive", within(t, "Receive of a closed session", func() error { return <-received }))
}

func lostConnection(t *testing.T, f Fixture) {
	s := connect(t, f)
	publish(t, f, 0, 1)
	receive(t, s, 1)
	received := make(chan error, 1)
	go func() {
		_, err := s.Receive(context.WithoutCancel(t.Context()))
		received <- err
	}()
	f.Break(t)
	expectClosed(t, "Receive", within(t, "Receive of a lost session", func() error { return <-received }))
	expectClosed(t, "Ack", s.Ack(1))
	expectClosed(t, "Broadcast", s.Broadcast(t.Context(), transport.Command{Method: "heartbeat"}))
}

func reconnect(t *testing.T, f Fixture) {
	s := connect(t, f)
	publish(t, f, 0, 2)
	receive(t, s, 2)
	if err := s.Ack(2); err != nil {
		t.Fatalf("acknowledge 2 messages: %v", err)
	}
	f.Break(t)
	if err := within(t, "Close of a lost session", s.Close); err != nil {
		t.Fatalf("close session: %v", err)
	}
	s = connect(t, f)
	if f.Redelivers {
		// A broker may not have seen the acknowledgement before the connection broke.
		drain(t, f, s)
		return
	}
	publish(t, f, 2, 3)
	expectMessages(t, receive(t, s, 3), 2, false)
}

// drain publishes one more message and receives until it arrives.
func drain(t *testing.T, f Fixture, s transport.Session) {
	t.Helper()
	publish(t, f, 2, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		batch, err := s.Receive(ctx)
		if err != nil {
			t.Fatalf("receive after a reconnect: %v", err)
		}
		for _, m := range batch {
			if string(m.Body) == "2" {
				return
			}
			if !m.Redelivered {
				t.Errorf("message %s is not marked as redelivered", m.Body)
			}
		}
	}
}

func connectContext(t *testing.T, f Fixture) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Broker.Connect(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("connect with an ended context: error %v, want %v", err, context.Canceled)
	}
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	s, err := f.Broker.Connect(ctx)
	if err != nil {
		t.Fatalf("connect to %s: %v", f.Broker, err)
	}
	cancel() // bounds the call only
	publish(t, f, 0, 1)
	expectMessages(t, receive(t, s, 1), 0, false)
	if err := s.Close(); err != nil {
		t.Fatalf("close session: %v", err)
	}
}

// concurrent is there for the race detector: its calls may fail with ErrClosed only.
func concurrent(t *testing.T, f Fixture) {
	const total = 300
	s := connect(t, f)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tags := make(chan uint64, total)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for tag := range tags {
				if err := s.Ack(tag); err != nil {
					t.Errorf("acknowledge message %d: %v", tag, err)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range total {
			if err := f.Publish(ctx, message(i)); err != nil {
				t.Errorf("publish message %d: %v", i, err)
			}
		}
	})
	wg.Go(func() {
		for range 3 {
			if err := s.Broadcast(ctx, transport.Command{Method: "heartbeat"}); err != nil {
				t.Errorf("broadcast heartbeat: %v", err)
			}
		}
	})
	for _, m := range receive(t, s, total) {
		tags <- m.Tag
	}
	close(tags)
	wg.Wait()
	for range 3 {
		wg.Go(func() {
			if err := s.Close(); err != nil {
				t.Errorf("close session: %v", err)
			}
		})
	}
	wg.Wait()
}
