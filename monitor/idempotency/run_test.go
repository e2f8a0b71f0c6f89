package idempotency_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/idempotency"
)

func TestRunExtendsAndCompletes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newMemory()
		l := newLocks(t, r, idempotency.LockOptions{TTL: time.Minute})
		err := l.Run(t.Context(), "f", "a", func(ctx context.Context) error {
			pass(time.Hour)
			skipped(t, l, idempotency.ConcurrentExecution)
			return ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		skipped(t, l, idempotency.AlreadyCompleted)
		err = l.Run(t.Context(), "f", "b", func(context.Context) error { t.Error("ran again"); return nil })
		if _, ok := errors.AsType[*idempotency.SkippedError](err); !ok {
			t.Errorf("got %v, want a SkippedError", err)
		}
	})
}

func TestRunReleasesAfterAFailure(t *testing.T) {
	t.Parallel()
	l := newLocks(t, newMemory(), idempotency.LockOptions{})
	failure := errors.New("card declined")
	if err := l.Run(t.Context(), "f", "", func(context.Context) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		_ = l.Run(t.Context(), "f", "", func(context.Context) error { panic("bug") })
	}()
	ctx, cancel := context.WithCancel(t.Context())
	_ = l.Run(ctx, "f", "", func(ctx context.Context) error { cancel(); return ctx.Err() })
	acquire(t, l, "")
}

func TestRunEndsWhatHasLostItsLock(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*memory){
		"taken by another": func(r *memory) { r.set("lock:f", "processing", time.Hour) },
		"expired":          func(r *memory) { r.delete("lock:f") },
		"Redis is away":    func(r *memory) { r.setAway(errors.New("connection refused")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newMemory()
				l := newLocks(t, r, idempotency.LockOptions{TTL: time.Minute})
				err := l.Run(t.Context(), "f", "a", func(ctx context.Context) error {
					lose(r)
					start := time.Now()
					<-ctx.Done()
					if d := time.Since(start); d > time.Minute+20*time.Second {
						t.Errorf("ended after %v", d)
					}
					if cause := context.Cause(ctx); !errors.Is(cause, idempotency.ErrLost) {
						t.Errorf("cause = %v, want ErrLost", cause)
					}
					return ctx.Err()
				})
				if !errors.Is(err, idempotency.ErrLost) || !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want ErrLost and what the function returned", err)
				}
			})
		})
	}
}

// Redis that is away for less than the TTL does not end a run.
func TestRunSurvivesAShortOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newMemory()
		l := newLocks(t, r, idempotency.LockOptions{TTL: time.Minute})
		err := l.Run(t.Context(), "f", "a", func(ctx context.Context) error {
			r.setAway(errors.New("connection refused"))
			pass(30 * time.Second)
			r.setAway(nil)
			pass(time.Hour)
			return ctx.Err()
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A late reply moves the end of the TTL between two ticks.
func TestRunEndsOnceATTLHasPassed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newMemory()
		l := newLocks(t, slowOnce{r, new(atomic.Bool)}, idempotency.LockOptions{TTL: time.Minute})
		_ = l.Run(t.Context(), "f", "a", func(ctx context.Context) error {
			pass(51 * time.Second) // extended at 20 s until 80 s, and at 50 s, 10 s late, until 110 s
			last := r.ttl("lock:f")
			r.setAway(errors.New("connection refused"))
			start := time.Now()
			<-ctx.Done()
			if d := time.Since(start); d > last {
				t.Errorf("ended after %v, and the lock after %v", d, last)
			}
			return ctx.Err()
		})
	})
}

// slowOnce answers the first script after half a minute.
type slowOnce struct {
	idempotency.Redis
	answered *atomic.Bool
}

func (s slowOnce) Do(ctx context.Context, args ...any) (any, error) {
	reply, err := s.Redis.Do(ctx, args...)
	if args[0] == "EVAL" && !s.answered.Swap(true) {
		<-time.After(30 * time.Second)
	}
	return reply, err
}
