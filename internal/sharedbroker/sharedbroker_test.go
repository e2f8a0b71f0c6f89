package sharedbroker_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/sharedbroker"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/brokertest"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// share serves b until the test ends, and returns it as another process has it.
func share(t *testing.T, b *inproc.Broker) (*sharedbroker.Server, *sharedbroker.Broker) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "broker")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s, ended := sharedbroker.New(b), make(chan error)
	go func() { ended <- s.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, sharedbroker.Dial(socket)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	brokertest.Run(t, func(t *testing.T) brokertest.Fixture {
		t.Helper()
		b := inproc.New(inproc.Options{})
		_, shared := share(t, b)
		return brokertest.Fixture{
			Broker: shared, Publish: b.Publish, Break: func(*testing.T) { b.Fail(errors.New("cable cut")) },
		}
	})
}

func TestControlConformance(t *testing.T) {
	t.Parallel()
	brokertest.RunControl(t, func(t *testing.T) brokertest.ControlFixture {
		t.Helper()
		b := inproc.New(inproc.Options{})
		_, shared := share(t, b)
		return brokertest.ControlFixture{
			Broker: shared,
			Break:  func(*testing.T) { b.Fail(errors.New("cable cut")) },
			Listen: func(t *testing.T, handle func(broker.Publishing)) {
				t.Helper()
				t.Cleanup(b.Listen(handle))
			},
			Answer: func(_ context.Context, to broker.ReplyTo, m broker.Publishing) error {
				b.Reply(to, m)
				return nil
			},
			CountsMailboxes: true,
			Queue: func(_ *testing.T, suffix string) string {
				name := rand.Text() + suffix
				b.Declare(name)
				return name
			},
			Take: func(ctx context.Context, queue string) (broker.Publishing, error) {
				c := b.Consume(queue)
				defer c.Close()
				m, err := c.Take(ctx)
				return m, errors.Join(err, c.Done())
			},
			MissesQueues: true, Browses: true, CountsUnacked: true,
		}
	})
}

func TestPeerConformance(t *testing.T) {
	t.Parallel()
	brokertest.RunPeers(t, func(t *testing.T) brokertest.PeerFixture {
		t.Helper()
		b := inproc.New(inproc.Options{})
		_, shared := share(t, b)
		return brokertest.PeerFixture{Broker: shared, Break: func(*testing.T) { b.Fail(errors.New("cable cut")) }}
	})
}

// TestAllHearAll has several processes hear what one publishes, also through the broker of another.
func TestAllHearAll(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	s, shared := share(t, b)
	var streams []broker.EventStream
	for range 3 {
		stream, err := shared.Subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stream.Close() })
		streams = append(streams, stream)
	}
	if err := s.Joined(t.Context(), len(streams)); err != nil {
		t.Fatal(err)
	}
	c, err := shared.OpenControl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	const total = 500
	for i := range total {
		body := []byte(fmt.Sprint(i))
		if i%2 == 0 {
			err = b.Publish(t.Context(), broker.Message{Body: body})
		} else {
			err = c.PublishEvent(t.Context(), "task.sent", broker.Publishing{Body: body})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for n, stream := range streams {
		for next := 0; next < total; {
			batch, err := stream.Receive(t.Context())
			if err != nil {
				t.Fatalf("stream %d after %d messages: %v", n, next, err)
			}
			for _, m := range batch {
				if got, want := string(m.Body), fmt.Sprint(next); got != want {
					t.Fatalf("stream %d: message = %s, want %s", n, got, want)
				}
				next++
			}
		}
	}
}
