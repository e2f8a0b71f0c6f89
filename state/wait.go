package state

import "strings"

// maxInversion is how far below nothing, µs, a wait may be and count as none. Below that the clocks disagree.
const maxInversion = 2_000_000

// maxClients bounds the clients whose clocks are compared.
const maxClients = 1_000

// Elapsed bounds the time between two events, µs: at least Low, which is not negative, and at most High, OpenHigh if
// that is not known.
type Elapsed struct{ Low, High int64 }

// LowSeconds is Low in seconds.
func (e Elapsed) LowSeconds() *float64 { return new(float64(e.Low) / 1e6) }

// HighSeconds is High in seconds, nil if it is not known.
func (e Elapsed) HighSeconds() *float64 {
	if e.High == OpenHigh {
		return nil
	}
	return new(float64(e.High) / 1e6)
}

// Moment is an event by its sender's wall clock.
type Moment struct {
	Hostname string
	PID      int64 // 0 if unknown
	Client   bool  // of a task-sent
	Micros   int64
}

// Elapsed returns bounds of the time from one event to another that it came before, by what is known of their senders'
// clocks. It is false if that says nothing, or that they did not happen in that order.
func (c *Cluster) Elapsed(from, to Moment) (Elapsed, bool) {
	raw := to.Micros - from.Micros
	if c.sameClock(from, to) {
		return Elapsed{raw, raw}, raw >= 0
	}
	a, b := c.offsetAround(from), c.offsetAround(to)
	e := Elapsed{0, OpenHigh}
	if a.Low != OpenLow && b.High != OpenHigh {
		e.Low = max(raw+a.Low-b.High, 0)
	}
	if a.High != OpenHigh && b.Low != OpenLow {
		e.High = raw + a.High - b.Low
	}
	return e, e.High >= e.Low && e != Elapsed{0, OpenHigh}
}

// Waited returns bounds of how long the newest execution of a task waited, as Elapsed does.
func (c *Cluster) Waited(t *Task) (Elapsed, bool) {
	if t.WaitedSince == 0 || len(t.Executions) == 0 {
		return Elapsed{}, false
	}
	x := &t.Executions[len(t.Executions)-1]
	to := Moment{Hostname: x.Worker, PID: x.PID, Micros: x.StartedAt}
	from := to
	from.Micros = t.WaitedSince
	if t.Client != nil && t.WaitedSince == t.SentAt {
		from.Hostname, from.PID, from.Client = *t.Client, 0, true
	}
	return c.Elapsed(from, to)
}

// sameClock reports whether two events are of one process whose clock was not set as far as is known.
func (c *Cluster) sameClock(a, b Moment) bool {
	if a.Hostname != b.Hostname || a.PID != b.PID || a.Client != b.Client {
		return false
	}
	w := c.workers[a.Hostname]
	return a.Client || w == nil || w.offset.History.sinceSet() == 0 && w.offset.History.pending != clockSet
}

// offsetAround returns bounds of the offset of a sender's clock when it sent an event.
func (c *Cluster) offsetAround(m Moment) ClockOffset {
	if w := c.workers[m.Hostname]; w != nil && !m.Client {
		return w.offset.History.around(m.Micros, w.offset.point(c.now))
	}
	low, known := c.clients[m.Hostname]
	if !m.Client || !known || absolute(m.Micros-low.Micros-low.At) > offsetReach {
		return unknownOffset
	}
	return ClockOffset{low.Micros - drift(m.Micros-low.Micros-low.At), OpenHigh}
}

// compareClient compares the clock of a client by a task-sent: it was received after it was sent.
func (c *Cluster) compareClient(e *Event) {
	if e.Retimed || e.ReceivedMicros == 0 {
		return
	}
	low := bound{Micros: e.Micros - e.ReceivedMicros - offsetRounding, At: e.ReceivedMicros}
	before, known := c.clients[e.Hostname]
	if known && low.Micros < before.Micros-drift(low.At-before.At)+driftPerSecond {
		return
	}
	if !known && len(c.clients) >= maxClients {
		for other := range c.clients { // any
			delete(c.clients, other)
			break
		}
	}
	if known {
		c.clients[e.Hostname] = low
	} else {
		c.clients[strings.Clone(e.Hostname)] = low
	}
}

// correctionOf is how far the clock of the sender of e is ahead, µs, 0 if it is not known to be off: by what is known of the
// worker, or at least since the event comes from the future.
func (c *Cluster) correctionOf(e *Event) int64 {
	if e.ReceivedMicros == 0 || e.Retimed {
		return 0
	}
	if w := c.workerOf(e); w != nil && e.Kind != TaskSent {
		if m := w.offset.correction(); m != 0 {
			return m
		}
	}
	if ahead := e.Micros - e.ReceivedMicros; ahead > minCorrection {
		return ahead
	}
	return 0
}

// waitTime is the time from one event of a task to its task-started, µs, by clocks that are corrected, and whether it is
// known. A little below nothing is none.
func (c *Cluster) waitTime(from, started *record) (int64, bool) {
	micros := started.micros - from.micros
	if from.process != started.process {
		a, known := c.ahead(from)
		b, also := c.ahead(started)
		if !known || !also {
			return 0, false
		}
		micros += a - b
	}
	return max(micros, 0), micros >= -maxInversion
}

// ahead is how far the clock of the sender of a record was known to be ahead, µs, 0 if it was taken as right. It is false if
// the clock was off and the file does not say how far.
func (c *Cluster) ahead(rec *record) (int64, bool) {
	if rec.flags&skewed == 0 {
		return 0, true
	}
	e, _ := c.fields("", rec)
	return e.OffsetMicros, e.Has(FieldClockOffset)
}
