package clock

import "math"

// clientSkew is what Celery adds to a client's clock, since clients never synchronise
// (celery/events/receiver.py, CLIENT_CLOCK_SKEW).
const clientSkew = -1

// Receiver gives every event that arrives a repaired clock, which rises with the raw clock of its process whatever
// the order of arrival, and compares across processes. The zero value remembers any number of processes; set
// MaxProcesses to bound it. It is not safe for concurrent use.
type Receiver struct {
	// MaxProcesses is how many processes are remembered; 0 means no bound. Beyond it the processes idle longest
	// are forgotten. If one sends again, it starts anew at the receiver's value.
	MaxProcesses int

	lamport   Lamport
	processes map[Process]*processClock
	recent    [recentProcesses]*processClock // by Process.Hash
	sweep     uint64                         // number of sweeps so far
}

// recentProcesses is how many processes are found without a look into the map: few send most events.
const recentProcesses = 1 << 8

// processClock is what the receiver remembers of a process: its current incarnation and the one before a restart.
type processClock struct {
	process  Process
	current  incarnation
	previous *incarnation
	sweep    uint64 // the sweep of its last event
}

// Value returns the receiver's Lamport clock.
func (r *Receiver) Value() int64 { return r.lamport.Value() }

// Restore continues from a value saved earlier, so that repaired clocks keep rising over a restart.
func (r *Receiver) Restore(v int64) { r.lamport.Restore(v) }

// Processes returns how many processes are remembered.
func (r *Receiver) Processes() int { return len(r.processes) }

// Client returns the repaired clock of an event from a client, whose own clock means nothing.
func (r *Receiver) Client() int64 {
	l := max(max(r.lamport.Value(), 1)+clientSkew, 1)
	r.lamport.Witness(l)
	return l
}

// Repair returns the repaired clock of an event, at least 1. raw is the sender's clock and is ignored unless
// Valid; micros is the event's wall clock and only distinguishes a restart from a late event.
func (r *Receiver) Repair(process Process, raw, micros int64) int64 {
	if !Valid(raw) {
		return r.lamport.Tick()
	}
	l := r.incarnationOf(process, raw, micros).repair(raw, micros, r.lamport.Value())
	if l < raw || l == math.MaxInt64 { // the sum overflowed: both clocks are absurd
		return r.lamport.Tick()
	}
	r.lamport.Witness(l)
	return l
}

// clockOf returns what is remembered of a process, nil if there is nothing.
func (r *Receiver) clockOf(process Process) *processClock {
	recent := &r.recent[process.Hash()%recentProcesses]
	if h := *recent; h != nil && h.process == process {
		return h
	}
	*recent = r.processes[process]
	return *recent
}

// incarnationOf returns the incarnation that the event belongs to, and starts one if needed.
func (r *Receiver) incarnationOf(process Process, raw, micros int64) *incarnation {
	h := r.clockOf(process)
	if h == nil {
		if r.processes == nil {
			r.processes = make(map[Process]*processClock)
		}
		if r.MaxProcesses > 0 && len(r.processes) >= r.MaxProcesses {
			r.forget()
		}
		process.Hostname = string([]byte(process.Hostname)) // the name may be part of a long message
		h = &processClock{process: process}
		r.processes[process] = h
	}
	h.sweep = r.sweep
	c := &h.current
	switch {
	case len(c.offsets) == 0:
	case raw < c.newest && micros > c.newestMicros+RestartGap:
		old := *c
		h.previous, h.current = &old, incarnation{}
	case h.previous != nil && micros+RestartGap < c.first:
		return h.previous
	}
	return &h.current
}

// forget drops the processes without an event since the last sweep or, if there are none, arbitrary ones.
func (r *Receiver) forget() {
	for process, h := range r.processes {
		if h.sweep < r.sweep {
			delete(r.processes, process)
		}
	}
	for process := range r.processes {
		if len(r.processes) < r.MaxProcesses-r.MaxProcesses/4 {
			break
		}
		delete(r.processes, process)
	}
	r.recent = [recentProcesses]*processClock{}
	r.sweep++
}

// Celery returns the clock that Celery's own receiver gives an event, and advances the receiver's clock as it
// does: a client's clock becomes the receiver's less one (so 0 at first), a missing one a tick, any other is used
// as sent (celery/events/receiver.py, event_from_message).
func (r *Receiver) Celery(raw int64, client, missing bool) int64 {
	switch {
	case client:
		raw = max(r.lamport.Value(), 1) + clientSkew
	case missing:
		return r.lamport.Tick()
	}
	r.lamport.Witness(raw)
	return raw
}
