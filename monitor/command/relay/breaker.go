package relay

import (
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/history"
)

const (
	breakerThreshold = 2 // sends in a row that find the broker unreachable before the breaker opens
	maxDeferral      = 5 // cooldowns by which a command is deferred at most
)

// postpone defers a command that found the broker unreachable, each time for longer than the breaker is open, so that another
// command probes the broker next: this one may be what the broker cannot take.
func (r *Relay) postpone(c *history.Command, err error) {
	now := r.o.Now()
	o := outcome(c, history.CommandPending)
	o.Deferrals++
	o.DueAt, o.Error = now.Add(time.Duration(min(o.Deferrals, maxDeferral))*r.o.Cooldown), truncate.Text(err.Error(), maxError)
	r.records.addOutcomes(o)
	opened := false
	r.change(func(s *Status) {
		s.Deferred++
		s.LastError = o.Error
		if r.unreachable++; r.unreachable >= breakerThreshold {
			s.BreakerUntil = now.Add(r.o.Cooldown)
			opened = r.unreachable == breakerThreshold
		}
	})
	if opened {
		r.o.Logger.Warn("broker unavailable, commands wait", "error", o.Error)
	}
}

// ended updates the status after a send, and closes the breaker if that reached the broker.
func (r *Relay) ended(reached bool, f func(s *Status)) {
	if reached {
		r.reached(f)
	} else {
		r.change(f)
	}
}

// reached closes the breaker and updates the status.
func (r *Relay) reached(f func(s *Status)) {
	recovered := false
	r.change(func(s *Status) {
		recovered = r.unreachable >= breakerThreshold
		r.unreachable, s.BreakerUntil = 0, time.Time{}
		f(s)
	})
	if recovered {
		r.o.Logger.Info("broker available again")
		r.poll()
	}
}

// open reports whether the breaker is open. mu is held.
func (r *Relay) open() bool {
	return r.unreachable >= breakerThreshold && r.o.Now().Before(r.status.BreakerUntil)
}

// paused reports whether the breaker is open.
func (r *Relay) paused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open()
}

// capacity returns how many commands may be claimed now: one as a probe after the breaker was open.
func (r *Relay) capacity() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.open():
		return 0
	case r.unreachable >= breakerThreshold:
		return 1 - len(r.claimed)
	default:
		return maxInFlight - len(r.claimed)
	}
}

// pause returns how long to wait before polling the store, unless woken.
func (r *Relay) pause() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open() {
		return r.status.BreakerUntil.Sub(r.o.Now())
	}
	return r.o.PollInterval
}
