package state

import (
	"cmp"
	"slices"
)

const (
	beatsBehind  = 4         // heartbeats that a frontier may be behind: one may be lost
	minBehind    = 5_000_000 // µs that it may be at least
	maxUncounted = 10        // names listed
)

// Watermark is a time up to which Umbel has all the events that counted workers have sent, but for those that are lost. Events
// of clients and custom events of tasks, which pool processes send, are not covered.
//
// Task events wait in batches that heartbeats overtake, but not for longer than to the next heartbeat: so what a process sent
// before the heartbeat before its newest one has come, or is lost. The watermark is the earliest of these heartbeats.
type Watermark struct {
	Micros  int64  // by the local clock, µs since 1970 UTC; 0 if no worker counts
	Bounded bool   // the clocks of all workers that count have upper bounds; else the watermark may be too late by the delay of their events
	Worker  string // whose heartbeat it is
	Behind  bool   // further than the worker's heartbeats are apart
	Within  int64  // how far behind it may be unless it is Behind, µs

	Workers        int      // that count: online or late, and two heartbeats or a worker-online have come
	Uncounted      int      // other workers that are not offline: they are stopping, or send no heartbeats
	UncountedNames []string // the first ten of them
}

// frontier is up to where the events of a worker's newest process have come.
type frontier struct {
	process         int64 // number of its incarnation
	newest, through point // newest heartbeat, and the one before; zero if there is none
}

// heartbeat takes in a heartbeat or worker-online. One that somebody has asked for comes at any time, so it tells nothing.
func (f *frontier) heartbeat(e *Event, process int64) {
	if e.Clock == 0 || e.Retimed || e.forced() {
		return
	}
	at := point{e.Clock, e.Micros}
	if process != f.process || at.Clock < f.newest.Clock && at.Micros > f.newest.Micros { // of another life with that pid
		*f = frontier{process: process}
	}
	if at.Clock <= f.newest.Clock {
		return
	}
	f.through, f.newest = f.newest, at
	if e.Kind == WorkerOnline && f.through.Clock == 0 {
		f.through = at // the process has sent nothing before, or all of it
	}
}

// passed reports whether an event that has only now come was to have come before. One with a later timestamp is of another life
// with that pid.
func (f *frontier) passed(e *Event, process int64) bool {
	return process == f.process && e.Clock != 0 && e.Clock <= f.through.Clock && e.Micros <= f.through.Micros
}

// Watermark returns the watermark of now.
func (c *Cluster) Watermark() Watermark {
	m := Watermark{Bounded: true, Within: minBehind}
	for _, w := range c.workers {
		switch status := c.status(w); {
		case status == Offline:
			continue
		case status == Stopping || w.frontier.through.Clock == 0 || w.frontier.process != w.current().Number:
			m.Uncounted++
			m.UncountedNames = append(m.UncountedNames, w.name)
			continue
		}
		at, bounded := w.localTime(w.frontier.through.Micros)
		if !bounded {
			m.Bounded = false
		}
		m.Workers++
		limit := max(int64(beatsBehind*w.freq()*1e6), minBehind)
		m.Within = max(m.Within, limit)
		if m.Micros == 0 || cmp.Or(cmp.Compare(at, m.Micros), cmp.Compare(w.name, m.Worker)) < 0 {
			m.Micros, m.Worker, m.Behind = at, w.name, c.now-at > limit
		}
	}
	slices.Sort(m.UncountedNames)
	m.UncountedNames = slices.Clip(m.UncountedNames[:min(len(m.UncountedNames), maxUncounted)])
	return m
}

// localTime is the earliest local time at which the worker's clock can have shown micros lately, if the clock has an upper
// bound, else the latest.
func (w *worker) localTime(micros int64) (at int64, bounded bool) {
	switch o := &w.offset; {
	case o.High.known():
		return micros - o.High.Micros - drift(micros-o.High.Micros-o.High.At), true
	case o.Low.known():
		return micros - o.Low.Micros + drift(micros-o.Low.Micros-o.Low.At), false
	default:
		return micros, false
	}
}

// LateEvents returns how many events have come after the watermark of their process had passed them.
func (c *Cluster) LateEvents() uint64 { return c.lateEvents }
