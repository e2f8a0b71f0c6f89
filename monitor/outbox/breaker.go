package outbox

import (
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

const (
	toOpen      = 2 // sends in a row that find the broker away, until nothing more is sent for a while
	mostPatient = 5 // cooldowns that a command is put off by at most
)

// postpone settles a command that found the broker away. Each time it is put off for longer than nothing is sent, so
// that another one shows how the broker is: it may be this command that the broker cannot take.
func (r *Relay) postpone(c *history.Command, err error) {
	now := r.o.Now()
	o := outcome(c, history.CommandPending)
	o.Deferrals++
	o.DueAt, o.Error = now.Add(time.Duration(min(o.Deferrals, mostPatient))*r.o.Cooldown), short(err)
	r.ledger.settle(o)
	opened := false
	r.change(func(s *Status) {
		s.Deferred++
		s.LastError = o.Error
		if r.away++; r.away >= toOpen {
			s.Until = now.Add(r.o.Cooldown)
			opened = r.away == toOpen
		}
	})
	if opened {
		r.o.Logger.Warn("broker away, commands wait", "error", o.Error)
	}
}

// reached notes that the broker has answered, with what has changed in the status.
func (r *Relay) reached(f func(s *Status)) {
	back := false
	r.change(func(s *Status) {
		back = r.away >= toOpen
		r.away, s.Until = 0, time.Time{}
		f(s)
	})
	if back {
		r.o.Logger.Info("broker back, commands are sent again")
		r.look()
	}
}

// open reports whether nothing is sent now, under mu.
func (r *Relay) open() bool { return r.away >= toOpen && r.o.Now().Before(r.status.Until) }

// resting reports whether nothing is sent now.
func (r *Relay) resting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open()
}

// room is how many commands may be claimed now: after the breaker was open one, which shows how the broker is.
func (r *Relay) room() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.open():
		return 0
	case r.away >= toOpen:
		return 1 - len(r.held)
	default:
		return r.o.Batch - len(r.held)
	}
}

// pause is how long not to look into the store unless woken.
func (r *Relay) pause() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open() {
		return r.status.Until.Sub(r.o.Now())
	}
	return r.o.Poll
}
