package state

import (
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/clock"
)

const (
	maxReviewed    = 10_000                   // unfinished tasks that one Reconcile looks at
	maxUncertain   = 50                       // tasks that it returns to look up in the result backend
	idleHeartbeats = 3                        // heartbeats in a row that report no running task
	minDoubt       = 10 * time.Second         // how long a task has been started before its worker is inspected
	uncertainAfter = 10 * time.Minute         // how long a task has waited before it is looked up in the result backend
	expiresGrace   = 30 * time.Second         // beyond expires, for wall clocks that disagree
	againAfter     = time.Hour                // after which a broker delivers again what a worker has lost: Redis' visibility_timeout
	evidenceClock  = "15:04:05"               // format of a time of the last hour in evidence, UTC
	evidenceDay    = "2006-01-02 15:04:05Z07" // format of any other time
)

// Inspection is a worker's reply to an inspection of its tasks. Lists are complete.
type Inspection struct {
	Worker                 string
	PID                    int64
	Clock                  int64 // its raw clock at the time
	RequestedAt, RepliedAt int64 // of the first request and the last reply, µs by the local clock
	Active                 []string
	Reserved               []string // reserved, or waiting for their ETA
	RateLimited            []string // names of tasks with a rate limit: those that wait for it are in no list
}

// absence records that a worker did not list an unfinished task that events place on it.
type absence struct {
	requested, replied int64 // of the first inspection
	again              int64 // request of the second inspection, 0 if there was none
	clock              int64 // of the worker at the second inspection
}

// Reconciliation is the result of Reconcile.
type Reconciliation struct {
	Changed   bool            // something was concluded or taken back
	Inspect   []string        // workers whose Inspection would decide more tasks
	Uncertain []UncertainTask // tasks that may have a result in the result backend
}

// UncertainTask is a task that may have ended unseen.
type UncertainTask struct {
	ID    string
	Stamp clock.Stamp // of its newest event
	Lost  bool        // it is already concluded to be lost
}

// ApplyInspection records what a worker has replied. A task that it should have and did not list is concluded to
// be lost by a later Reconcile, if it is missing from the next reply too and an event has arrived that the worker
// sent after that.
func (c *Cluster) ApplyInspection(i Inspection) {
	w := c.workers[i.Worker]
	if w == nil || i.Clock == 0 || w.shared() || w.current().PID != i.PID {
		return
	}
	c.version++
	w.inspected = max(w.inspected, i.RequestedAt)
	process := c.processes.lookup(clock.Process{Hostname: w.name, PID: i.PID})
	listed := make(map[taskKey]bool, len(i.Active)+len(i.Reserved))
	for _, ids := range [][]string{i.Active, i.Reserved} {
		for _, id := range ids {
			k, _ := key(id)
			listed[k] = true
			c.recordListed(k, process, i)
		}
	}
	if process == 0 {
		return
	}
	c.unfinishedOn(process, func(r *row) {
		switch a, asked := c.absent[r.id]; {
		case listed[r.id]:
			delete(c.absent, r.id)
		case r.state == codeReceived && slices.Contains(i.RateLimited, c.routes.key(r.name).name):
		case !asked:
			c.absent[r.id] = absence{requested: i.RequestedAt, replied: i.RepliedAt}
		case a.again == 0 && i.RequestedAt > a.replied:
			a.again, a.clock = i.RequestedAt, i.Clock
			c.absent[r.id] = a
		}
	})
}

// recordListed records that a worker has listed a task, which overrides whatever was concluded of it before.
func (c *Cluster) recordListed(k taskKey, process uint32, i Inspection) {
	n := c.find(k)
	if n == 0 || c.states.final(c.rows.at(n).state) {
		return
	}
	r := c.rows.at(n)
	if r.flags&lost != 0 && c.concluded[k].At < i.RequestedAt {
		c.changeConclusion(n, c.clearConclusion)
	}
	if r.process == 0 || r.process != process || r.flags&ended != 0 {
		c.listed[k] = i.RepliedAt
	}
}

// shared reports whether another process has recently used the worker's name, so that replies may be of either.
func (w *worker) shared() bool {
	now := w.current()
	return slices.ContainsFunc(w.incarnations, func(o incarnation) bool { return o.PID != now.PID && o.Last > now.First })
}

// noteIdle records a heartbeat with its number of running tasks. The count is taken before the heartbeat is sent,
// so a single one with no task proves nothing about a task that has just started.
func (l *incarnation) noteIdle(active int64, at point) {
	if active != 0 {
		l.IdleHeartbeats = [idleHeartbeats]int64{}
		return
	}
	copy(l.IdleHeartbeats[:], l.IdleHeartbeats[1:])
	l.IdleHeartbeats[idleHeartbeats-1] = at.Clock
	l.IdleClock = max(l.IdleClock, l.IdleHeartbeats[0])
}

// Reconcile checks some of the unfinished tasks, the next ones each time, and concludes what heartbeats and
// inspections of workers, and the tasks' own expiry, prove by now, µs. It must not be called while events are
// known to be missed: missing events prove nothing then.
func (c *Cluster) Reconcile(now int64) Reconciliation {
	v := review{c: c, now: now, fold: causal{processes: c.processes}, processes: make(map[uint32]processStatus), inspect: make(map[string]bool)}
	if c.options.Rules != Causal {
		return v.Reconciliation
	}
	c.now = max(c.now, now)
	v.findIdle()
	var rows []uint32
	chunk, i := c.byStamp.seek(c.reviewed, func(e listItem) bool { return e.clock <= c.reviewed })
	c.byStamp.oldest(chunk, i, func(entries []listItem) bool {
		for _, e := range entries {
			if len(rows) >= maxReviewed && e.clock > c.reviewed {
				return false
			}
			if !c.states.final(e.state) && e.flags&dismissed == 0 {
				rows = append(rows, e.row)
			}
			c.reviewed = e.clock
		}
		return true
	})
	if len(rows) < maxReviewed {
		c.reviewed = 0 // begin again
	}
	for _, i := range rows {
		v.check(i)
	}
	for name := range v.inspect {
		v.Inspect = append(v.Inspect, name)
	}
	slices.Sort(v.Inspect)
	return v.Reconciliation
}

// review is a Reconcile in progress.
type review struct {
	Reconciliation
	c         *Cluster
	now       int64
	fold      causal
	processes map[uint32]processStatus
	inspect   map[string]bool
	idleSince int64 // since then, every worker has shown once that it ran no unknown task, µs
	attempts  int   // tasks for which every worker was checked
}

// processStatus is what is known of a process.
type processStatus struct {
	w         *worker
	ended     string // why it will not report the end of any task it has started
	restarts  bool   // it may have restarted under its pid: tasks started before will not end
	idleClock int64  // raw clock at which it ran nothing, 0 if there is no such
	clock     int64  // newest raw clock
	doubt     bool   // it runs fewer tasks than events place on it
}

func (v *review) status(process uint32) processStatus {
	if p, ok := v.processes[process]; ok {
		return p
	}
	l := v.c.processes.key(process)
	p := processStatus{w: v.c.workers[l.Hostname]}
	if p.w != nil {
		now, status := p.w.current(), v.c.status(p.w)
		p.ended = v.c.processEnd(l, maxMicros)
		p.restarts = p.w.forgot(l.PID) || now.PID == l.PID && p.w.had(l.PID, now.First)
		if now.PID == l.PID {
			p.idleClock, p.clock = now.IdleClock, now.Clock
			unfinished, received := v.c.unfinishedOf(l)
			p.doubt = status == Online && now.Report.Has&FieldActive != 0 && int64(unfinished-received) > now.Report.Active
		}
	}
	v.processes[process] = p
	return p
}

// check decides on one unfinished task.
func (v *review) check(i uint32) {
	c := v.c
	r := c.rows.at(i)
	waits := r.process == 0 || r.flags&ended != 0 || r.state == codeReceived && v.ended(r) != "" // it is in a queue again
	switch {
	case r.flags&orphaned != 0:
		if v.ended(r) == "" { // its worker was not dead
			v.Changed = true
			c.changeConclusion(i, c.clearConclusion)
			return
		}
	case r.flags&lost != 0:
	case waits && r.flags&expiring != 0:
		if at, sent, ok := c.expiry(r); ok && v.now >= at+expiresGrace.Microseconds() && v.neverReceived(r, at+expiresGrace.Microseconds(), sent) {
			v.conclude(i, ReasonExpired, "no worker took it before it expired at "+time.UnixMicro(at).UTC().Format(evidenceDay))
			return
		}
	case !waits:
		if why := v.ended(r); why != "" {
			v.conclude(i, ReasonOrphaned, why)
		} else if why := v.absent(r); why != "" {
			v.conclude(i, ReasonNotRunning, why)
		}
	}
	backend := r.flags&lost != 0 && c.concluded[r.id].Reason != ReasonBackend
	if backend || r.flags&lost == 0 && (waits || r.state == codeReceived) && v.now-r.micros > uncertainAfter.Microseconds() {
		if len(v.Uncertain) < maxUncertain {
			v.Uncertain = append(v.Uncertain, UncertainTask{c.id(r), c.stamp(r), backend})
		}
	}
}

func (v *review) conclude(i uint32, reason Reason, evidence string) {
	v.Changed = true
	v.c.changeConclusion(i, func(r *row) {
		v.c.clearConclusion(r)
		v.c.setConclusion(r, Conclusion{reason, evidence, v.now})
	})
}

// ended returns why the process of a task will not report its end, empty if it may.
func (v *review) ended(r *row) string {
	p := v.status(r.process)
	if p.ended != "" || !p.restarts {
		return p.ended
	}
	v.fold.fold(v.c.chain(r, nil))
	return v.c.processEnd(v.c.processes.key(r.process), v.fold.newest().first)
}

// absent returns how the worker that a task should be on has shown that it does not have it, empty if it has not.
func (v *review) absent(r *row) string {
	p := v.status(r.process)
	if p.w == nil {
		return ""
	}
	begun, old := r.state != codeReceived, minDoubt
	if !begun {
		old = againAfter
	}
	long := p.w.current().Last-r.micros > old.Microseconds() // both by the worker's clock
	a := v.c.absent[r.id]
	inspected := a.again != 0 && p.clock > a.clock && long
	if (begun && p.idleClock > 0 || inspected) && v.noneRunning(r, inspected) {
		if inspected {
			return fmt.Sprintf("%s did not list it when it was asked at %s and %s UTC", p.w.name,
				time.UnixMicro(a.requested).UTC().Format(evidenceClock), time.UnixMicro(a.again).UTC().Format(evidenceClock))
		}
		return p.w.name + " has sent heartbeats since that count no running task"
	}
	if long && (p.doubt || !begun && v.c.status(p.w) == Online) {
		v.inspect[p.w.name] = true
	}
	return ""
}

// noneRunning reports whether no execution of a task can be running: each has ended, or so has its process, or the
// process ran nothing after the execution's newest event. The newest execution is exempt if its worker was
// inspected.
func (v *review) noneRunning(r *row, inspected bool) bool {
	v.fold.fold(v.c.chain(r, nil))
	for i := range v.fold.executions {
		x := &v.fold.executions[i]
		if x.ended() || inspected && i == len(v.fold.executions)-1 {
			continue
		}
		p, newest := v.status(x.process), x.latest()
		if v.c.processEnd(v.c.processes.key(x.process), x.first) == "" &&
			(newest == nil || newest.clock == 0 || newest.clock >= p.idleClock || p.w == nil || x.first < p.w.current().First) {
			return false
		}
	}
	return true
}

// expiry returns when a task expires and when it was sent or sent again last, µs.
func (c *Cluster) expiry(r *row) (at, sent int64, ok bool) {
	w := c.walk(r)
	for e := w.next(); e != nil; e = w.next() {
		if f, _ := c.fields("", e); f.Has(FieldExpires) {
			if t, known := ParseTime(f.Expires); known {
				at, ok = max(at, t), true
			}
		}
		sent = max(sent, e.micros)
	}
	return at, sent, ok
}

// findIdle finds the latest moment after which every worker has shown once that it runs no unknown task.
func (v *review) findIdle() {
	v.idleSince = maxMicros
	for _, w := range v.c.workers {
		if !v.c.hasShutDown(w) {
			v.idleSince = min(v.idleSince, max(w.idleAt, w.inspected))
		}
	}
}

// neverReceived reports whether no worker can have received a task before it was due: after that, none starts it any
// more. Each has shown since that it does not run it, or has sent nothing since before the task was sent.
func (v *review) neverReceived(r *row, due, sent int64) bool {
	listed := v.c.listed[r.id]
	if v.idleSince >= max(due, listed+1) {
		return true
	}
	const maxTried = 100
	if v.attempts++; v.attempts > maxTried {
		return false
	}
	all := true
	for _, w := range v.c.workers {
		if v.c.hasShutDown(w) || w.lastSeen < sent || max(w.idleAt, w.inspected) >= max(due, listed+1) {
			continue
		}
		all = false
		if v.c.status(w) == Online {
			v.inspect[w.name] = true
		}
	}
	return all
}

const maxMicros = 1<<63 - 1

// ParseTime reads a time as Celery sends it, in ISO 8601, µs since 1970. One without a zone is UTC (celery/app/amqp.py).
func ParseTime(s string) (micros int64, ok bool) {
	for _, layout := range [...]string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", time.DateTime,
	} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.UnixMicro(), true
		}
	}
	return 0, false
}
