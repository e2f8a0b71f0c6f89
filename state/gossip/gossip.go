// Package gossip tells which workers hear each other's events, by their raw Lamport clocks. A worker with gossip sets its
// clock past that of each worker event that it hears. So one whose clock stays behind heartbeats of another that came long
// before does not hear them. The converse cannot be told: the one whose clock is ahead may hear the other or not.
//
// Nothing here is proved: what is heard may be late by more than is waited for. A worker without gossip hears nobody, which
// looks the same.
package gossip

import (
	"cmp"
	"maps"
	"slices"

	"github.com/umbelhq/umbel/state"
)

// Bounds, and times in µs of the local clock.
const (
	maxWorkers = 200 // whose heartbeats are compared; those beyond are left out
	maxBeats   = 32  // heartbeats held of each
	late       = 10_000_000
	slack      = 5_000_000
	recent     = 60_000_000 // age of the newest heartbeat beyond which a worker is forgotten
	least      = 3          // heartbeats in a row that tell that a worker is deaf
	together   = 8          // heartbeats in a row that tell that it follows another, after a first one
	fallen     = 3          // heartbeats in a row below the newest, after which the process is another
)

// Deaf says that a worker does not seem to hear another. Since is when the first heartbeat of Speaker was received that Worker's
// clock had not passed when this was found, µs; where Longer, it began before what is remembered.
type Deaf struct {
	Worker, Speaker string
	Since           int64
	Longer          bool
}

// Report is what the clocks say. All of it is consistent with them, and nothing proved.
type Report struct {
	Islands [][]string // workers whose clocks advance together, two or more in each, by name
	Deaf    []Deaf     // by name
	// Compared is how many workers were, and Left how many more have heartbeats.
	Compared, Left int
}

// beat is a heartbeat. events is how many events of its process had been seen.
type beat struct{ clock, received, events int64 }

type worker struct {
	pid    int64
	since  int64  // receipt of the first event of the process
	beats  []beat // by clock, oldest first
	events int64
	below  int  // heartbeats in a row with clocks below the newest
	forgot bool // older heartbeats were dropped
}

// Detector compares workers. Its zero value is ready to use. It is not safe for concurrent use.
type Detector struct {
	workers map[string]*worker
	deaf    map[[2]string]Deaf // of the last report, by worker and speaker
}

// Forget drops what is known of a worker.
func (d *Detector) Forget(name string) { delete(d.workers, name) }

// Add takes in an event. Events that come twice or late do no harm.
func (d *Detector) Add(e *state.Event) {
	if e.PID == 0 || !e.Has(state.FieldClock) || !e.Kind.Worker() && !e.Kind.Task() || e.Kind == state.TaskSent || e.Kind == state.TaskCustom {
		return
	}
	w := d.workers[e.Hostname]
	switch {
	case e.Kind == state.WorkerOffline:
		d.Forget(e.Hostname)
		return
	case w != nil && w.pid == e.PID && e.Kind != state.WorkerOnline:
	case e.Kind.Task(): // of a process that no heartbeat has named yet
		return
	case w == nil && len(d.workers) >= maxWorkers*4:
		return
	default:
		if d.workers == nil {
			d.workers = make(map[string]*worker)
		}
		w = &worker{pid: e.PID, since: e.ReceivedMicros}
		d.workers[string([]byte(e.Hostname))] = w // the strings of events are reused
	}
	w.events++
	if e.Kind == state.WorkerHeartbeat {
		w.add(beat{e.Clock, e.ReceivedMicros, w.events})
	}
}

func (w *worker) add(b beat) {
	if n := len(w.beats); n > 0 && b.clock <= w.beats[n-1].clock {
		if w.below++; w.below < fallen {
			return
		}
		*w = worker{pid: w.pid, since: b.received, events: w.events} // another process with its pid
	}
	w.below = 0
	if len(w.beats) == maxBeats {
		w.beats, w.forgot = append(w.beats[:0], w.beats[1:]...), true
	}
	w.beats = append(w.beats, b)
}

// last returns when the newest heartbeat was received, or the first event if none was.
func (w *worker) last() int64 {
	if n := len(w.beats); n > 0 {
		return w.beats[n-1].received
	}
	return w.since
}

// before returns the newest heartbeat received by a time, false if there is none.
func (w *worker) before(at int64) (b beat, ok bool) {
	for _, b := range slices.Backward(w.beats) {
		if b.received <= at {
			return b, true
		}
	}
	return b, false
}

// deaf reports whether the newest heartbeats of w are behind heartbeats of o that came long before, since w began.
func (w *worker) deaf(o *worker) bool {
	if len(w.beats) < least {
		return false
	}
	for _, b := range w.beats[len(w.beats)-least:] {
		heard, ok := o.before(b.received - late)
		if !ok || heard.clock < b.clock || heard.received < w.since+slack {
			return false
		}
	}
	return true
}

// follows reports whether each of the newest heartbeats of w is past what o had sent shortly before, and whether its clock has
// advanced by what it would have heard of o beside its own events.
func (w *worker) follows(o *worker) bool {
	if len(w.beats) <= together {
		return false
	}
	newest := w.beats[len(w.beats)-together-1:]
	for _, b := range newest {
		if heard, ok := o.before(b.received - slack); !ok || heard.clock >= b.clock {
			return false
		}
	}
	first, last, heard := newest[0], newest[together], int64(0)
	for _, b := range o.beats {
		if b.received > first.received && b.received <= last.received {
			heard++
		}
	}
	return heard > 0 && last.clock-first.clock >= last.events-first.events+heard
}

// Report compares the workers at a local time, µs. Call it every few seconds: it remembers since when a worker is deaf, whose
// own events take its clock past what it has not heard.
func (d *Detector) Report(now int64) (r Report) {
	maps.DeleteFunc(d.workers, func(_ string, w *worker) bool { return now-w.last() > recent })
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.workers)) {
		if len(d.workers[name].beats) > 0 {
			names = append(names, name)
		}
	}
	r.Left = max(len(names)-maxWorkers, 0)
	names = names[:len(names)-r.Left]
	r.Compared = len(names)
	island := make(map[string]string, len(names)) // by its first worker
	for i, a := range names {
		for _, b := range names[i+1:] {
			x, y := d.workers[a], d.workers[b]
			apart := r.compare(a, b, x, y)
			if apart = r.compare(b, a, y, x) || apart; !apart && x.follows(y) && y.follows(x) {
				from, to := cmp.Or(island[b], b), cmp.Or(island[a], a)
				island[a], island[b] = to, to
				for _, other := range names {
					if island[other] == from {
						island[other] = to
					}
				}
			}
		}
	}
	for _, first := range names {
		var members []string
		for _, name := range names {
			if island[name] == first {
				members = append(members, name)
			}
		}
		if len(members) > 1 {
			r.Islands = append(r.Islands, members)
		}
	}
	found := make(map[[2]string]Deaf, len(r.Deaf))
	for i, v := range r.Deaf {
		pair := [2]string{v.Worker, v.Speaker}
		if known, ok := d.deaf[pair]; ok {
			r.Deaf[i] = known
		}
		found[pair] = r.Deaf[i]
	}
	d.deaf = found
	slices.SortFunc(r.Deaf, func(a, b Deaf) int { return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Speaker, b.Speaker)) })
	return r
}

// compare reports whether a does not seem to hear b, and notes it then.
func (r *Report) compare(a, b string, w, o *worker) bool {
	if !w.deaf(o) {
		return false
	}
	v := Deaf{Worker: a, Speaker: b}
	clock := w.beats[len(w.beats)-1].clock
	for i, heard := range o.beats {
		if heard.clock >= clock && heard.received >= w.since {
			v.Since, v.Longer = heard.received, i == 0 && o.forgot
			break
		}
	}
	r.Deaf = append(r.Deaf, v)
	return true
}
