package idempotency

import (
	"context"
	"errors"
	"time"
)

// endTimeout is how long Run takes at most to complete or release a lock.
const endTimeout = 5 * time.Second

// Run runs f under the lock of a call, which it extends every third of the TTL. It completes the lock if f returns nil, and
// releases it if f returns an error or panics. The error is a [*SkippedError] if f was not run, that of f, or what failed
// about the lock, all of them where there are several. While Redis is away the lock cannot be extended: once a TTL has
// passed since it was, or when another has taken it, the context of f is cancelled, and its cause is ErrLost.
func (l *Locks) Run(ctx context.Context, fingerprint, taskID string, f func(context.Context) error) (err error) {
	expires := time.Now().Add(l.ttl) // no later than Redis thinks
	lock, err := l.Acquire(ctx, fingerprint, taskID)
	if err != nil {
		return err
	}
	inner, cancel := context.WithCancelCause(ctx)
	keeping, stopKeeping := context.WithCancel(inner)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		if err := lock.keep(keeping, expires); err != nil {
			cancel(err)
		}
	}()
	finished := false
	defer func() {
		stopKeeping()
		<-kept
		lost := context.Cause(inner)
		cancel(nil)
		end, stop := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer stop()
		switch {
		case finished && err == nil:
			err = lock.Complete(end)
		case errors.Is(lost, ErrLost):
			err = errors.Join(err, lost)
		default:
			err = errors.Join(err, lock.Release(end))
		}
	}()
	err = f(inner)
	finished = true
	return err
}

// keep extends the lock until ctx ends, or until the lock is lost, which it returns.
func (l *Lock) keep(ctx context.Context, expires time.Time) error {
	tick := time.NewTicker(max(l.locks.ttl/3, time.Millisecond))
	defer tick.Stop()
	end := time.NewTimer(time.Until(expires))
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-end.C:
			return l.explain("extend", ErrLost)
		case <-tick.C:
		}
		until := time.Now().Add(l.locks.ttl)
		attempt, cancel := context.WithDeadline(ctx, expires)
		err := l.Extend(attempt)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			expires = until
			end.Reset(time.Until(expires))
		case errors.Is(err, ErrLost):
			return err
		case !time.Now().Before(expires):
			return errors.Join(l.explain("extend", ErrLost), err)
		}
	}
}
