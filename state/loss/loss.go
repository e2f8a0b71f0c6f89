// Package loss finds task-started events that workers sent and that were not received. A heartbeat says how many tasks
// its process has accepted, and a worker sends task-started for each: what a process accepted between two heartbeats,
// less the task-started events seen with clocks between theirs, is missing. Arrival order does not matter: an event
// that comes late takes the claim back. So is the task-started of an execution that was received and has succeeded or retried.
//
// # What is taken for granted
//
// A claim is true if each node name and pid is one process at a time, its tasks have not set send_events to False, and
// nobody turned its task events off and on again meanwhile. Two live processes that share a name and pid give themselves
// away by counts that fall, and tasks without events by clocks that leave no room for the events missed; then nothing is
// claimed. Nothing is claimed of a process before its first task event either, nor after its last.
package loss

import (
	"cmp"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
)

// Bounds of what is held: about 2 kB for a process with many heartbeats.
const (
	maxProcesses  = 6_000
	maxHeartbeats = 24 // of one process; later ones bound where a loss lies
	maxGaps       = 8  // of one process, behind those heartbeats
	maxUnstarted  = 32 // executions of one process that heartbeats do not tell of, or not yet
	maxListed     = 200
)

// Gap says that at least Missing task-started events of one process were not received, all with clocks between After
// and Before.
type Gap struct {
	Worker        string // node name
	PID           int64
	Missing       int64
	After, Before int64 // raw Lamport clocks of the process, both exclusive
	// The timestamps of the heartbeats with those clocks, µs since 1970 UTC by the worker's wall clock.
	AfterMicros, BeforeMicros int64
	Task                      string // id of the task that has ended without it; empty if the counts of heartbeats tell
}

// heartbeat is a heartbeat of a process, and what was seen since the first one with a lower clock than its own.
type heartbeat struct {
	clock, micros     int64
	processed, active int64
	started           int64 // task-started events
	events            int64 // events of any kind
	overtaken         bool  // task events with greater clocks had come before it, and count as seen before it too
}

// claims is what is claimed up to some heartbeat.
type claims struct {
	missing int64     // since the first heartbeat
	from    heartbeat // after this one comes what is not claimed yet
}

// process is what is known of one process since its first heartbeat after a task event.
type process struct {
	first           heartbeat
	recent          []heartbeat // by clock, the newest last
	started, events int64       // since first
	firstTask       int64       // least clock of its task events, 0 if there is none
	lastTask        int64       // greatest
	settled         claims      // up to the heartbeats before recent
	before          int64       // missing in earlier lives of its pid
	latest, earlier int64       // greatest timestamp of its events, and of those of earlier lives, µs
	gaps            []Gap       // before recent
	doubtful        bool        // its heartbeats may be those of two processes
	seen            int64       // receipt of its newest event, µs
	unstarted       []Gap       // executions that have ended without a task-started; oldest first
	missing         int64
}

// Detector finds lost events. Its zero value is ready to use. It is not safe for concurrent use.
type Detector struct {
	processes map[clock.Process]*process
	pids      map[string][]int64 // of processes, by node name
	missing   int64
}

// Missing returns how many task-started events are known to be missing.
func (d *Detector) Missing() int64 { return d.missing }

// Gaps returns where events are missing, by the time at which they were sent: the newest 200. It is empty, not nil, if
// none is.
func (d *Detector) Gaps() []Gap {
	all := []Gap{}
	if d.missing == 0 {
		return all
	}
	for l, p := range d.processes {
		if p.missing == 0 {
			continue
		}
		for _, g := range p.allGaps() {
			g.Worker, g.PID = l.Hostname, l.PID
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(a.BeforeMicros, b.BeforeMicros), cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.PID, b.PID), cmp.Compare(a.After, b.After))
	})
	return all[max(0, len(all)-maxListed):]
}

// Forget drops what is known of the worker of a node name.
func (d *Detector) Forget(worker string) {
	for len(d.pids[worker]) > 0 {
		d.drop(clock.Process{Hostname: worker, PID: d.pids[worker][0]})
	}
}

// Add takes in an event and what it has changed. It copies what it keeps.
func (d *Detector) Add(e *state.Event, ch state.Change) {
	if !ch.New || !e.Kind.Task() && !e.Kind.Worker() || e.Kind == state.TaskSent || e.Kind == state.TaskCustom || e.PID == 0 {
		return // of a client or a child process, which have clocks of their own
	}
	l := clock.Process{Hostname: e.Hostname, PID: e.PID}
	p := d.processes[l]
	if p == nil {
		p = d.add(l)
	}
	d.missing -= p.missing
	p.seen = max(p.seen, e.ReceivedMicros)
	switch {
	case e.Kind.Task():
		p.task(e, ch.Unstarted)
	case e.Kind != state.WorkerOffline && e.Has(state.FieldProcessed|state.FieldActive|state.FieldClock):
		p.heartbeat(e)
	default:
		p.count(e)
	}
	d.missing += p.missing
}

func (d *Detector) add(l clock.Process) *process {
	if len(d.processes) >= maxProcesses {
		var oldest clock.Process
		least := int64(0)
		for o, p := range d.processes {
			if oldest.Hostname == "" || p.seen < least {
				oldest, least = o, p.seen
			}
		}
		d.drop(oldest)
	}
	if d.processes == nil {
		d.processes, d.pids = make(map[clock.Process]*process), make(map[string][]int64)
	}
	l.Hostname = strings.Clone(l.Hostname)
	p := &process{}
	d.processes[l] = p
	d.pids[l.Hostname] = append(d.pids[l.Hostname], l.PID)
	return p
}

func (d *Detector) drop(l clock.Process) {
	d.missing -= d.processes[l].missing
	delete(d.processes, l)
	d.pids[l.Hostname] = slices.DeleteFunc(d.pids[l.Hostname], func(pid int64) bool { return pid == l.PID })
	if len(d.pids[l.Hostname]) == 0 {
		delete(d.pids, l.Hostname)
	}
}

// task takes in an event of a task.
func (p *process) task(e *state.Event, u state.Unstarted) {
	known := p.addUnstarted(e, u)
	n := len(p.recent)
	if u.Count != 0 || known || n > 0 && p.lastTask < p.recent[n-1].clock { // the first after a heartbeat lets that claim
		defer p.sum()
	}
	if e.Clock == 0 {
		p.restart(true)
		return
	}
	if n > 0 && e.Clock <= p.recent[n-1].clock && e.Micros > p.recent[n-1].micros+clock.RestartGap {
		p.restart(true) // its worker-online has not come, and gossip may soon raise its clock above those heartbeats
	}
	p.latest = max(p.latest, e.Micros)
	if p.firstTask == 0 || e.Clock < p.firstTask {
		p.firstTask = e.Clock
	}
	p.lastTask = max(p.lastTask, e.Clock)
	if known && (len(p.recent) == 0 || e.Clock <= p.first.clock) {
		return // no heartbeat counts it
	}
	p.count(e)
}

// count counts an event for the heartbeats with greater clocks. One from before the first heartbeat takes back an older
// claim.
func (p *process) count(e *state.Event) {
	n := int64(0)
	if e.Kind == state.TaskStarted {
		n = 1
	}
	if len(p.recent) == 0 || e.Clock <= p.first.clock || e.Micros+clock.RestartGap < p.first.micros {
		if n > 0 && p.before > 0 && e.Micros <= p.earlier {
			p.before--
			p.takeBack(e)
			p.sum()
		}
		return
	}
	p.events++
	p.started += n
	late := false
	for i := len(p.recent) - 1; i >= 0 && p.recent[i].clock > e.Clock; i-- {
		p.recent[i].events++
		p.recent[i].started += n
		late = true
	}
	if n > 0 && p.settled.missing > 0 && e.Clock < p.recent[0].clock {
		if from, claimed := p.takeBack(e); claimed {
			p.settled.missing--
			if from.clock < p.settled.from.clock {
				p.settled.from = from
			}
		}
	}
	if late {
		p.sum()
	}
}

// takeBack removes a late event from the gap that it lay in, or from the first after it. It may be another one that is
// missing there, which is then found again, and may lie anywhere after the beginning of that gap. Nothing is claimed of an event that
// is later than all gaps.
func (p *process) takeBack(e *state.Event) (from heartbeat, claimed bool) {
	for i := range p.gaps {
		if g := &p.gaps[i]; g.BeforeMicros >= e.Micros {
			from = heartbeat{clock: g.After, micros: g.AfterMicros}
			if g.Missing--; g.Missing == 0 {
				p.gaps = slices.Delete(p.gaps, i, i+1)
			}
			return from, true
		}
	}
	return heartbeat{}, false
}

// heartbeat takes in an event that says how many tasks the process has accepted.
func (p *process) heartbeat(e *state.Event) {
	online := e.Kind == state.WorkerOnline
	if n := len(p.recent); n > 0 {
		newest := p.recent[n-1]
		again := e.Clock <= newest.clock
		if again && e.Micros <= newest.micros+clock.RestartGap {
			p.count(e)
			return
		}
		if again || e.Processed < newest.processed {
			p.restart(!online)
		}
	}
	p.latest = max(p.latest, e.Micros)
	p.doubtful = p.doubtful && !online
	if p.doubtful || p.firstTask == 0 || e.Clock <= p.firstTask {
		return
	}
	h := heartbeat{
		clock: e.Clock, micros: e.Micros, processed: e.Processed, active: max(e.Active, 0), started: p.started, events: p.events,
		overtaken: e.Clock < p.lastTask,
	}
	if len(p.recent) == 0 {
		if h.overtaken {
			return
		}
		p.first, p.settled = h, claims{from: h}
	}
	p.events++ // the heartbeat itself
	p.recent = append(p.recent, h)
	if len(p.recent) > maxHeartbeats {
		p.settle(1)
	}
	p.sum()
}

// restart begins anew with the next heartbeat: a process with that pid has started. If it is doubtful whether the old
// one has ended, what was claimed of its recent heartbeats is withdrawn, and nothing is until the worker comes online.
func (p *process) restart(doubtful bool) {
	if !doubtful {
		p.settle(len(p.recent) - 1)
	}
	p.before += p.settled.missing + int64(len(p.uncounted(p.settled.missing)))
	p.unstarted, p.earlier = nil, p.latest
	p.doubtful = doubtful
	p.recent, p.settled = nil, claims{}
	p.started, p.events, p.firstTask, p.lastTask = 0, 0, 0, 0
	p.sum()
}

// settle makes what is claimed up to the first n recent heartbeats final, except for late events, and forgets them.
func (p *process) settle(n int) {
	if n <= 0 {
		return
	}
	for i := range n {
		if g, ok := p.claim(&p.settled, i); ok {
			p.gaps = append(p.gaps, g)
		}
	}
	p.recent = slices.Delete(p.recent, 0, n)
	if extra := len(p.gaps) - maxGaps; extra > 0 {
		p.gaps = slices.Delete(p.gaps, 0, extra)
	}
}

// claim adds to c what recent heartbeat i proves. The next heartbeat must have come, since heartbeats overtake the
// batches of task events that were sent before them.
//
// A task is counted before its task-started is sent, and in a pool of threads a heartbeat may come between: as many
// events as there are tasks running may follow the heartbeat, if that many have been seen.
func (p *process) claim(c *claims, i int) (g Gap, ok bool) {
	h, before := p.recent[i], p.recent[i]
	excess := h.processed - p.first.processed - h.started
	after := min(h.active, p.recent[i+1].started-h.started)
	if after < h.active {
		before = p.recent[i+1]
	}
	unseen := h.clock - p.first.clock - h.events
	if before.clock <= p.lastTask {
		if n := min(excess-after, unseen); n > c.missing {
			g = Gap{
				Missing: n - c.missing, After: c.from.clock, AfterMicros: c.from.micros,
				Before: before.clock, BeforeMicros: before.micros,
			}
			c.missing, ok = n, true
		}
	}
	if excess <= c.missing && !h.overtaken {
		c.from = h
	}
	return g, ok
}

// allGaps returns every gap, oldest first.
func (p *process) allGaps() []Gap {
	all := slices.Clone(p.gaps)
	c := p.settled
	for i := range len(p.recent) - 1 {
		if g, ok := p.claim(&c, i); ok {
			all = append(all, g)
		}
	}
	return append(all, p.uncounted(c.missing)...)
}

// sum counts what is missing.
func (p *process) sum() {
	c := p.settled
	for i := range len(p.recent) - 1 {
		p.claim(&c, i)
	}
	p.missing = p.before + c.missing + int64(len(p.uncounted(c.missing)))
}
