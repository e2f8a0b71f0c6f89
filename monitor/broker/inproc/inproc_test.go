package inproc_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/brokertest"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	brokertest.Run(t, func(*testing.T) brokertest.Fixture {
		b := inproc.New(inproc.Options{})
		return brokertest.Fixture{
			Broker:     b,
			Publish:    b.Publish,
			Break:      func(*testing.T) { b.Fail(errors.New("cable cut")) },
			Redelivers: true,
		}
	})
}

func TestPublishWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, total = 10, 100
		b := inproc.New(inproc.Options{Limit: limit})
		published := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range total {
				if err := b.Publish(t.Context(), broker.Message{Body: []byte(strconv.Itoa(i))}); err != nil {
					t.Errorf("publish message %d: %v", i, err)
				}
				published++
			}
		}()
		synctest.Wait()
		if got, want := published, limit; got != want {
			t.Errorf("published with nobody connected = %d, want %d", got, want)
		}

		s := connect(t, b)
		for next := 0; next < total; {
			batch, err := s.Receive(t.Context())
			if err != nil {
				t.Fatalf("receive message %d: %v", next, err)
			}
			for _, m := range batch {
				if got, want := string(m.Body), strconv.Itoa(next); got != want {
					t.Fatalf("body = %s, want %s", got, want)
				}
				next++
			}
		}
		<-done
	})
}

func TestPublishEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{Limit: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Publish(ctx, broker.Message{}); err != nil {
			t.Fatalf("publish to an empty broker: %v", err)
		}
		if err := b.Publish(ctx, broker.Message{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("publish to a full broker: error %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

func TestReceiveGathersForMaxGather(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		published int
		want      int
		wantTime  time.Duration
	}{
		"one message":                {published: 1, want: 1, wantTime: broker.MaxBatchDelay},
		"almost a batch":             {published: 63, want: 63, wantTime: broker.MaxBatchDelay},
		"a batch and one more":       {published: 65, want: 64},
		"a message that comes later": {want: 1, wantTime: time.Second + broker.MaxBatchDelay},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := inproc.New(inproc.Options{})
				s := connect(t, b)
				for range test.published {
					publish(t, b)
				}
				if test.published == 0 {
					later := time.AfterFunc(time.Second, func() { publish(t, b) })
					defer later.Stop()
				}
				start := time.Now()
				batch, err := s.Receive(t.Context())
				if err != nil {
					t.Fatalf("receive: %v", err)
				}
				if got := len(batch); got != test.want {
					t.Errorf("received %d messages, want %d", got, test.want)
				}
				if got := time.Since(start); got != test.wantTime {
					t.Errorf("receive took %v, want %v", got, test.wantTime)
				}
			})
		})
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	refusal := errors.New("broker is down")
	b.Refuse(refusal)
	if _, err := b.Subscribe(t.Context()); !errors.Is(err, refusal) {
		t.Errorf("connect to a refusing broker: error %v, want %v", err, refusal)
	}
	b.Refuse(nil)
	connect(t, b)
	if _, err := b.Subscribe(t.Context()); err == nil {
		t.Error("second session of one broker: no error")
	}
}

func TestFailNamesItsCause(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	s := connect(t, b)
	cause := errors.New("cable cut")
	b.Fail(cause)
	_, err := s.Receive(t.Context())
	if !errors.Is(err, broker.ErrClosed) || !errors.Is(err, cause) {
		t.Errorf("receive after Fail: error %v, want %v with %v", err, broker.ErrClosed, cause)
	}
}

// BenchmarkBroker passes messages from producers to a receiver that acknowledges every batch.
func BenchmarkBroker(b *testing.B) {
	for _, producers := range []int{1, 4} {
		b.Run("producers="+strconv.Itoa(producers), func(b *testing.B) {
			hub := inproc.New(inproc.Options{})
			s := connect(b, hub)
			body := make([]byte, 300)
			total := b.N * producers
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for range producers {
				wg.Go(func() {
					for range b.N {
						if err := hub.Publish(b.Context(), broker.Message{Body: body}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for n := 0; n < total; {
				batch, err := s.Receive(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Ack(batch[len(batch)-1].Tag); err != nil {
					b.Fatal(err)
				}
				n += len(batch)
			}
			wg.Wait()
			b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "msgs/s")
		})
	}
}

func connect(tb testing.TB, b *inproc.Broker) broker.EventStream {
	tb.Helper()
	s, err := b.Subscribe(tb.Context())
	if err != nil {
		tb.Fatalf("connect: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close session: %v", err)
		}
	})
	return s
}

func publish(tb testing.TB, b *inproc.Broker) {
	tb.Helper()
	if err := b.Publish(tb.Context(), broker.Message{Body: []byte("{}")}); err != nil {
		tb.Errorf("publish: %v", err)
	}
}
