package simulate_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/simulate"
)

func TestRunKeepsTime(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{20, 5_000} {
		o := simulate.Options{Seed: 9, Rate: rate, Length: 2 * time.Second}
		synctest.Test(t, func(t *testing.T) {
			o.Start = time.Now().Add(-time.Second) // a second of history
			want, err := simulate.New(o)
			if err != nil {
				t.Fatal(err)
			}
			played, err := simulate.New(o)
			if err != nil {
				t.Fatal(err)
			}
			begin, n := time.Now(), 0
			err = played.Run(t.Context(), func(_ context.Context, m broker.Message) error {
				d, ok := want.Next()
				if !ok || !bytes.Equal(m.Body, d.Body) {
					t.Fatalf("message %d = %s, want %s", n, m.Body, d.Body)
				}
				due := d.At
				if due.Before(begin) {
					due = begin
				}
				if late := time.Since(due); late < 0 || late > time.Millisecond {
					t.Fatalf("message %d is %v late, want 0 to 1 ms", n, late)
				}
				n++
				return nil
			})
			if err != nil {
				t.Errorf("Run = %v", err)
			}
			if _, more := want.Next(); more {
				t.Errorf("Run published %d messages and left some out", n)
			}
		})
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := simulate.New(simulate.Options{Start: time.Now(), Rate: 0.001})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+300*time.Microsecond)
		defer cancel()
		begin := time.Now()
		if err := c.Run(ctx, func(context.Context, broker.Message) error { return nil }); err != nil {
			t.Errorf("Run = %v, want nil when ctx ends", err)
		}
		if got, want := time.Since(begin), 10*time.Second+300*time.Microsecond; got != want {
			t.Errorf("Run returned after %v, want %v", got, want)
		}
	})
}

func TestRunStopsWhilePublishBlocks(t *testing.T) {
	t.Parallel()
	c, err := simulate.New(simulate.Options{Start: time.Now().Add(-time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = c.Run(ctx, func(ctx context.Context, _ broker.Message) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil {
		t.Errorf("Run = %v, want nil when ctx ends", err)
	}
}

func TestRunReturnsTheErrorOfPublish(t *testing.T) {
	t.Parallel()
	c, err := simulate.New(simulate.Options{Start: time.Now().Add(-time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken pipe")
	err = c.Run(t.Context(), func(context.Context, broker.Message) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("Run = %v, want %v", err, broken)
	}
}
