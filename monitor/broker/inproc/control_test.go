package inproc_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/brokertest"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
)

func TestControlConformance(t *testing.T) {
	t.Parallel()
	brokertest.RunControl(t, func(*testing.T) brokertest.ControlFixture {
		b := inproc.New(inproc.Options{})
		return brokertest.ControlFixture{
			Broker: b,
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
			Hold: func(t *testing.T, queue string) {
				t.Helper()
				c := b.Consume(queue)
				t.Cleanup(c.Close)
				if _, err := c.Take(t.Context()); err != nil {
					t.Errorf("take a message: %v", err)
				}
			},
			Consume: func(t *testing.T, queue string) {
				t.Helper()
				t.Cleanup(b.Consume(queue).Close)
			},
			MissesQueues: true, Browses: true, CountsUnacked: true,
		}
	})
}

func TestConsumerGivesBackWhatItHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, giveBack)
}

func giveBack(t *testing.T) {
	at := time.Now() // time stands still in a bubble
	b := inproc.New(inproc.Options{})
	b.Declare("mail")
	c, err := b.OpenControl(t.Context())
	if err != nil {
		t.Fatalf("open control connection: %v", err)
	}
	for _, id := range []string{"1", "2", "3"} {
		if err := c.Publish(t.Context(), "mail", broker.Publishing{CorrelationID: id}); err != nil {
			t.Fatalf("publish: %v", err)
		}
	}
	first := b.Consume("mail")
	expectTake(t, first, "1")
	expectTake(t, first, "2")
	if err := first.Done(); err != nil {
		t.Errorf("acknowledge: %v", err)
	}
	s, err := c.QueueStats(t.Context(), nil)
	if err != nil || len(s.Queues) != 1 {
		t.Fatalf("stats has %d queues, error %v, want 1", len(s.Queues), err)
	}
	q := s.Queues[0]
	if *q.Ready != 1 || *q.Unacked != 1 || *q.Consumers != 1 || *q.Published != 3 || *q.Delivered != 2 || *q.Acked != 1 {
		t.Errorf("stats = %d ready, %d unacked, %d consumers, %d published, %d delivered, %d acked, want 1 1 1 3 2 1",
			*q.Ready, *q.Unacked, *q.Consumers, *q.Published, *q.Delivered, *q.Acked)
	}
	if q.OldestUnacked == nil || !q.OldestUnacked.Equal(at) {
		t.Errorf("oldest unacked = %v, want %v", q.OldestUnacked, at)
	}
	first.Close()

	second := b.Consume("mail")
	t.Cleanup(second.Close)
	expectTake(t, second, "2")
	expectTake(t, second, "3")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := second.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("take from an empty queue: error %v, want %v", err, context.DeadlineExceeded)
	}
}

func expectTake(t *testing.T, c *inproc.Consumer, want string) {
	t.Helper()
	m, err := c.Take(t.Context())
	if err != nil {
		t.Fatalf("take: %v", err)
	}
	if got := m.CorrelationID; got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
}

func TestFullQueueRefuses(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	b.Declare("mail")
	c, err := b.OpenControl(t.Context())
	if err != nil {
		t.Fatalf("open control connection: %v", err)
	}
	var n int
	for ; err == nil; n++ {
		err = c.Publish(t.Context(), "mail", broker.Publishing{})
	}
	if got, want := n-1, 100_000; got != want || !errors.Is(err, broker.ErrRefused) {
		t.Errorf("published %d messages, then %v, want %d, then %v", got, err, want, broker.ErrRefused)
	}
}

func TestRefuseControlConns(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	refusal := errors.New("broker is down")
	b.Refuse(refusal)
	if _, err := b.OpenControl(t.Context()); !errors.Is(err, refusal) {
		t.Errorf("open a line to a refusing broker: error %v, want %v", err, refusal)
	}
}
