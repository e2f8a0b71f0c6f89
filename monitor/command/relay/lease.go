package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// renewals is how often a lease is renewed before it would end.
const renewals = 5

// lease lets a relay claim and send commands. Once it has ended, others may take what it has claimed.
type lease struct {
	name   string
	length time.Duration // 0 does not end
	until  time.Time     // by the monotonic clock of this process
	begun  bool
}

// begin renews the lease, or takes one under a new name if that is gone. What was claimed under the former one is no longer this
// relay's: its sends end first. While the store does not answer, the name stays: what was sent is recorded under it.
func (r *Relay) begin(ctx context.Context) bool {
	if r.renewOnce(ctx) {
		return true
	}
	if r.held().begun {
		return false
	}
	r.senders.Wait()
	name, at := rand.Text(), time.Now()
	length, err := r.o.Store.BeginRelay(ctx, name)
	if err != nil {
		if ctx.Err() == nil {
			r.o.Logger.WarnContext(ctx, "commands wait: the store does not answer", "error", err)
		}
		return false
	}
	r.change(func(*Status) {
		r.lease = lease{name: name, length: length, until: at.Add(length), begun: true}
		clear(r.claimed)
	})
	return true
}

// renew renews the lease until ctx ends.
func (r *Relay) renew(ctx context.Context) {
	timer := time.NewTimer(r.o.PollInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		wait := r.o.PollInterval // before a lease is there, and after a failure
		if r.renewOnce(ctx) {
			length := r.held().length
			if length == 0 {
				return
			}
			wait = length / renewals
		}
		timer.Reset(wait)
	}
}

// renewOnce renews the lease and reports whether there is one.
func (r *Relay) renewOnce(ctx context.Context) bool {
	l := r.held()
	if !l.begun || l.length == 0 {
		return l.begun
	}
	ctx, cancel := context.WithTimeout(ctx, l.length)
	defer cancel()
	at := time.Now()
	err := r.o.Store.RenewRelay(ctx, l.name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lease.name != l.name {
		return false
	}
	switch {
	case errors.Is(err, history.ErrNotFound):
		r.lease.begun, r.lease.until = false, time.Time{}
		return false
	case err != nil:
		return false
	}
	r.lease.until = at.Add(l.length)
	return true
}

// end lets others take what this relay has left.
func (r *Relay) end(ctx context.Context) {
	if !r.held().begun || ctx.Err() != nil {
		return
	}
	if err := r.o.Store.EndRelay(ctx, r.held().name); err != nil {
		r.o.Logger.WarnContext(ctx, "end of relay not recorded", "error", err)
	}
}

// held returns the lease as it is.
func (r *Relay) held() lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lease
}

// left returns how long it holds unless it is renewed.
func (l lease) left() time.Duration {
	switch {
	case !l.begun:
		return 0
	case l.length == 0:
		return 1 << 62
	default:
		return time.Until(l.until)
	}
}

// reclaimInterval is the time between looks for what relays that are gone have left.
func (r *Relay) reclaimInterval() time.Duration {
	if length := r.held().length; length > 0 {
		return length / renewals
	}
	return claimTimeout
}
