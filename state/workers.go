package state

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/clock"
)

// worker is what is known of one node name: the incarnations of its processes. Everything in it is a maximum over
// events, so arrival order cannot matter, except for how the incarnations of a reused pid are told apart.
type worker struct {
	name          string
	incarnations  []incarnation // by first timestamp; the newest maxEpochs
	dropped       int64         // incarnations forgotten
	processes     int64         // incarnations discovered
	lastSeen      int64         // newest local receipt time of any of its events, µs
	lastHeartbeat int64         // newest local receipt time of its own events, µs
	clock         int64         // newest repaired clock
	offset        offset        // of its clock
	frontier      frontier

	idleAt    int64 // when it last reported no running task, by the earlier of its own and the local clock, µs
	inspected int64 // request time of its last inspection, µs

	lastReport *LastReport // nil if it has never reported

	reported Status // as of the last Expire
	changed  bool   // since it was last saved
	gone     bool   // no longer known
}

// incarnation is one process of a worker, from start to restart.
type incarnation struct {
	Number      int64 // in order of discovery, from 1
	PID         int64
	First, Last int64 // least and greatest timestamp, µs
	Clock       int64 // greatest raw clock, and
	ClockMicros int64 // its timestamp
	Alive       point // newest online or heartbeat
	Goodbye     point // newest offline
	Report      report

	IdleClock      int64                 `json:"Quiet"`  // newest raw clock at which it ran nothing, as that heartbeat and the next ones reported
	IdleHeartbeats [idleHeartbeats]int64 `json:"IdleAt"` // raw clocks of the newest heartbeats, the newest last; 0 before one with running tasks
}

// point is a moment of one process: raw clock, then timestamp.
type point struct{ Clock, Micros int64 }

// after reports whether p is later than q in the same process.
func (p point) after(q point) bool {
	if p.Clock != 0 && q.Clock != 0 && p.Clock != q.Clock {
		return p.Clock > q.Clock
	}
	return p.Micros > q.Micros
}

// report is what a worker reports of itself with each heartbeat.
type report struct {
	At                        point
	Has                       Fields
	Freq                      float64
	Active, Processed         int64
	Load                      [3]float64
	Software, Version, System string
	Extra                     map[string]string
}

const (
	maxIncarnations = 8
	maxExtra        = 16         // unknown fields stored of a worker
	minLate         = 10_000_000 // µs before a worker is late, at least
	defaultFreq     = 2.0        // seconds, Celery's default
	unknownFreq     = 60.0       // seconds, for a worker known by its tasks alone, as Celery has it
	maxFreq         = 3600.0     // seconds; a larger value would keep a dead worker online
	offlineAfter    = 1.5        // × the time without events that makes a worker late
	maxStopping     = 3600e6     // µs without events for which one that sent worker-offline may still be ending its tasks
)

// noteActivity records that a task event, which may be known already, proves its worker alive.
func (c *Cluster) noteActivity(e *Event, repaired int64, isNew bool) {
	w := c.workerOf(e)
	if w == nil {
		if e.Kind == TaskCustom { // perhaps from a client
			return
		}
		w = c.addWorker(e.Hostname)
	}
	w.changed = true
	w.lastSeen = max(w.lastSeen, e.ReceivedMicros)
	w.clock = max(w.clock, repaired)
	if e.Kind != TaskCustom { // custom events come from pool children, under another pid
		l := w.incarnation(e)
		w.compareClock(e, l)
		if isNew && w.frontier.passed(e, l.Number) {
			c.lateEvents++
		}
	}
}

// applyWorker folds in a worker's event about itself.
func (c *Cluster) applyWorker(e *Event, repaired int64) {
	w := c.workerOf(e)
	if w == nil {
		w = c.addWorker(e.Hostname)
	}
	c.version++
	w.changed = true
	w.lastSeen = max(w.lastSeen, e.ReceivedMicros)
	w.clock = max(w.clock, repaired)
	l := w.incarnation(e)
	w.compareClock(e, l)
	at := point{e.Clock, e.Micros}
	switch e.Kind {
	case WorkerOffline:
		if at.after(l.Goodbye) {
			l.Goodbye = at
		}
	case WorkerOnline, WorkerHeartbeat:
		w.lastHeartbeat = max(w.lastHeartbeat, e.ReceivedMicros)
		if !e.forced() && at.after(l.Alive) { // a worker that waits for its last tasks still obeys the command
			l.Alive = at
		}
		if l == w.current() {
			w.frontier.heartbeat(e, l.Number)
		}
	default:
	}
	if e.Kind == WorkerHeartbeat && e.Has(FieldActive) && !e.forced() && at.after(l.Report.At) {
		l.noteIdle(e.Active, at)
		if e.Active == 0 {
			w.idleAt = max(w.idleAt, min(e.Micros, e.ReceivedMicros))
		}
	}
	if !e.forced() && e.Present&(FieldFreq|FieldActive|FieldProcessed|FieldLoad|FieldSoftware) != 0 {
		l.Report.merge(e, at)
	}
}

// forced reports whether the event is a heartbeat made by the heartbeat control command. It says
// freq 5, an integer, and nothing else that is true (heartbeat in celery/worker/control.py).
func (e *Event) forced() bool {
	return e.Kind == WorkerHeartbeat && e.FreqIsInt && e.Freq == 5 && !e.Has(FieldActive)
}

// merge takes over what e reports, unless a later event has reported it.
func (r *report) merge(e *Event, at point) {
	if r.Has != 0 && !at.after(r.At) {
		return
	}
	r.At = at
	r.Has |= e.Present &^ e.Null
	for _, f := range []struct {
		bit Fields
		set func()
	}{
		{FieldFreq, func() { r.Freq = e.Freq }},
		{FieldActive, func() { r.Active = e.Active }},
		{FieldProcessed, func() { r.Processed = e.Processed }},
		{FieldLoad, func() { r.Load = e.Load }},
		{FieldSoftware, func() { r.Software = strings.Clone(symbol(e.Software)) }},
		{FieldVersion, func() { r.Version = strings.Clone(symbol(e.Version)) }},
		{FieldSystem, func() { r.System = strings.Clone(symbol(e.System)) }},
	} {
		if e.Has(f.bit) {
			f.set()
		}
	}
	for k, v := range e.Extra {
		if len(r.Extra) >= maxExtra || len(k)+len(v) > maxSymbol {
			continue
		}
		if r.Extra == nil {
			r.Extra = make(map[string]string)
		}
		r.Extra[strings.Clone(k)] = strings.Clone(v)
	}
}

// addWorker makes room for a worker of that name, if need be by forgetting the one whose newest event is oldest.
func (c *Cluster) addWorker(name string) *worker {
	if len(c.workers) >= maxWorkers {
		var oldest *worker
		for _, w := range c.workers {
			if oldest == nil || w.lastSeen < oldest.lastSeen {
				oldest = w
			}
		}
		c.dropWorker(oldest.name)
	}
	w := &worker{name: strings.Clone(symbol(name))}
	c.workers[w.name] = w
	delete(c.forgotten, w.name)
	c.version++
	return w
}

// incarnation returns the incarnation that sent e. It starts one for a new pid, or where the clock of the same pid
// has dropped although time has gone on (clock.RestartGap).
func (w *worker) incarnation(e *Event) *incarnation {
	for i := len(w.incarnations) - 1; i >= 0; i-- {
		l := &w.incarnations[i]
		if l.PID != e.PID {
			continue
		}
		if e.Clock != 0 && e.Clock < l.Clock && e.Micros > l.ClockMicros+clock.RestartGap {
			break
		}
		if i > 0 && e.Micros+clock.RestartGap < l.First && slices.ContainsFunc(w.incarnations[:i], func(o incarnation) bool { return o.PID == e.PID }) {
			continue // of an earlier incarnation of this pid
		}
		l.Last = max(l.Last, e.Micros)
		l.First = min(l.First, e.Micros)
		if e.Clock > l.Clock {
			l.Clock, l.ClockMicros = e.Clock, e.Micros
		}
		return l
	}
	w.processes++
	l := incarnation{Number: w.processes, PID: e.PID, First: e.Micros, Last: e.Micros, Clock: e.Clock, ClockMicros: e.Micros}
	at := len(w.incarnations)
	for at > 0 && w.incarnations[at-1].First > e.Micros {
		at--
	}
	if len(w.incarnations) == maxIncarnations {
		if at == 0 {
			l.Number = 0
			return &l // of a process long forgotten
		}
		w.incarnations = append(w.incarnations[:0], w.incarnations[1:]...)
		w.dropped++
		at--
	}
	w.incarnations = slices.Insert(w.incarnations, at, l)
	return &w.incarnations[at]
}

// compareClock compares the worker's wall clock with the local one by an event of an incarnation, unless that has ended.
func (w *worker) compareClock(e *Event, l *incarnation) {
	known := w.offset.Process
	if l.Number >= known || l == w.current() {
		w.offset.add(e, l.Number, e.Kind == WorkerOnline)
	}
}

// current is the incarnation with the newest event.
func (w *worker) current() *incarnation {
	best := &w.incarnations[0]
	for i := range w.incarnations {
		if l := &w.incarnations[i]; l.Last >= best.Last {
			best = l
		}
	}
	return best
}

// status judges by local receive time only: c.now is the local time. A worker that sent worker-offline sends no more
// heartbeats: it is stopping until the tasks that it had started have ended.
func (c *Cluster) status(w *worker) Status {
	l := w.current()
	unseen := float64(c.now - w.lastSeen)
	limit := w.timeout()
	if l.Goodbye.Micros != 0 && !l.Alive.after(l.Goodbye) {
		if unfinished, received := c.unfinishedOf(clock.Process{Hostname: w.name, PID: l.PID}); unseen <= maxStopping && unfinished > received {
			return Stopping
		}
		return Offline
	}
	switch {
	case unseen <= limit:
		return Online
	case unseen <= limit*offlineAfter:
		return Late
	}
	return Offline
}

// timeout is the time without events, µs, after which a worker is late.
func (w *worker) timeout() float64 { return math.Max(3*w.freq()*1e6, minLate) }

// freq is the seconds between heartbeats.
func (w *worker) freq() float64 {
	l := w.current()
	switch {
	case l.Report.Has&FieldFreq != 0 && l.Report.Freq > 0:
		return math.Min(l.Report.Freq, maxFreq)
	case w.lastHeartbeat == 0:
		return unknownFreq
	}
	return defaultFreq
}

// Expire moves the local time to now (µs), by which workers become late or offline, and reports
// whether any has since it was last called.
func (c *Cluster) Expire(now int64) bool {
	c.now = max(c.now, now)
	changed := false
	for _, w := range c.workers {
		if status := c.status(w); status != w.reported {
			w.reported, changed = status, true
		}
	}
	if changed {
		c.version++
	}
	return changed
}

// Shift records that the local wall clock was set forward by so many µs, or backward if negative. The age of what was
// received before stays the same.
func (c *Cluster) Shift(by int64) {
	c.now += by
	c.shiftClients(by)
	for _, w := range c.workers {
		w.changed = true
		w.offset.shift(by)
		if w.lastSeen != 0 {
			w.lastSeen += by
		}
		if w.lastHeartbeat != 0 {
			w.lastHeartbeat += by
		}
		if w.lastReport != nil {
			moved := *w.lastReport
			moved.At += by
			w.lastReport = &moved
		}
	}
	c.version++
}

// shiftClients is shift for the clocks of clients.
func (c *Cluster) shiftClients(by int64) {
	for name, low := range c.clients {
		low.Micros, low.At = low.Micros-by, low.At+by
		c.clients[name] = low
	}
}

// Resume records that all that was saved is loaded and replayed, and what the local time is now, µs. A worker
// with events later than that, by a wall clock that was set back since, counts as offline until its next event.
func (c *Cluster) Resume(now int64) {
	c.now = now
	for _, w := range c.workers {
		if w.lastSeen > now {
			w.lastSeen = now - int64(w.timeout()*offlineAfter) - 1
		}
		w.lastHeartbeat = min(w.lastHeartbeat, now)
	}
	c.version++
}

// Workers returns copies of all workers by name.
func (c *Cluster) Workers() []Worker {
	workers := make([]Worker, 0, len(c.workers))
	for _, name := range slices.Sorted(maps.Keys(c.workers)) {
		workers = append(workers, c.workerView(c.workers[name]))
	}
	return workers
}

// Worker returns a copy of the worker of that node name.
func (c *Cluster) Worker(name string) (Worker, bool) {
	w, ok := c.workers[name]
	if !ok {
		return Worker{}, false
	}
	return c.workerView(w), true
}

func (c *Cluster) workerView(w *worker) Worker {
	l := w.current()
	r := &l.Report
	v := Worker{
		Name: w.name, PID: l.PID, Status: c.status(w), LastHeartbeatAt: w.lastHeartbeat,
		Restarts: int64(len(w.incarnations)) - 1 + w.dropped, Clock: w.clock,
		Active: reported(r, FieldActive, r.Active), Processed: reported(r, FieldProcessed, r.Processed),
		Load: reported(r, FieldLoad, r.Load), Software: reported(r, FieldSoftware, r.Software),
		Version: reported(r, FieldVersion, r.Version), System: reported(r, FieldSystem, r.System),
		LastReport: w.lastReport, Extra: maps.Clone(r.Extra),
	}
	v.RunningTasks, _ = c.unfinishedOf(clock.Process{Hostname: w.name, PID: l.PID})
	v.ClockOffset = w.offset.present(c.now)
	if m, ok := w.offset.estimate(); ok {
		v.ClockOffsetMicros = &m
	}
	v.ClockSetAt = w.offset.History.sinceSet()
	if w.lastHeartbeat != 0 {
		v.FreqSeconds = w.freq()
	}
	return v
}

// reported returns a field of a report, nil if the worker has not reported it.
func reported[T any](r *report, f Fields, value T) *T {
	if r.Has&f == 0 {
		return nil
	}
	return new(value)
}
