package outboxwatch

import "time"

// StoppedAfter is how long a row must be ready, and no row be taken, before the relay counts as stopped. A running relay
// looks for rows every second, and after a failure of the broker every 30 s by default.
const StoppedAfter = 2 * time.Minute

// Relay is what the rows tell of the application's relay, by the clock of the database.
type Relay struct {
	// Stopped reports that some row has been ready, and no row been taken, for StoppedAfter at least.
	Stopped bool
	// IdleSince is when a row was last taken as far as is known, or a row became ready after that; zero if no row is
	// ready. A row is taken if UpdatedAt of any row advances, or the first ready one is not ready any longer.
	IdleSince time.Time
}

// relayWatch judges a relay from one sum of its outbox after another. The zero value is ready for use.
type relayWatch struct {
	seen       bool
	last       Stats
	progressAt time.Time // when a row was last seen to be taken, or nothing was ready
}

// observe takes the next sum.
func (w *relayWatch) observe(s Stats) Relay {
	progress := !w.seen || s.ReadySince.IsZero() || s.FirstReady != w.last.FirstReady && w.last.FirstReady != 0 ||
		s.LastTaken.After(w.last.LastTaken) || s.Now.Before(w.last.Now)
	if progress {
		w.progressAt = s.Now
	}
	w.seen, w.last = true, s
	if s.ReadySince.IsZero() {
		return Relay{}
	}
	since := w.progressAt
	if s.ReadySince.After(since) {
		since = s.ReadySince
	}
	return Relay{Stopped: s.Now.Sub(since) >= StoppedAfter, IdleSince: since}
}
