package state

import (
	"cmp"
	"slices"

	"github.com/umbelhq/umbel/clock"
)

// execution is one attempt on one process, as the fold sees it.
type execution struct {
	generation int // of its message: how often the task had been replaced
	attempt    int64
	process    uint32
	received   bool                    // opened by a task-received
	replaced   bool                    // it ended by publishing another task under its id
	first      int64                   // least timestamp of its own events, µs
	clock      int64                   // raw clock of its first event
	byKind     [TaskCustom + 1]*record // the event that counts for each kind, nil if there is none
}

// dominance lists the kinds of events by precedence: the first that an execution has decides its state.
var dominance = [...]Kind{ //nolint:gochecknoglobals // a constant table
	TaskSucceeded, TaskFailed, TaskRetried, TaskRevoked, TaskRejected, TaskCustom, TaskStarted, TaskReceived,
}

// event returns the event of a kind, nil if there is none. A revocation overrides an empty success.
func (r *execution) event(k Kind) *record {
	e := r.byKind[k]
	if e != nil && e.flags&emptySuccess != 0 && r.byKind[TaskRevoked] != nil {
		return nil
	}
	return e
}

// dominant returns the event that decides the state of the execution.
func (r *execution) dominant() *record {
	for _, k := range dominance {
		if e := r.event(k); e != nil {
			return e
		}
	}
	return nil
}

// countWith returns how many of the executions that the records make have an event of that kind.
func (f *causal) countWith(records []*record, kind Kind) (n int) {
	f.fold(records)
	for i := range f.executions {
		if f.executions[i].byKind[kind] != nil {
			n++
		}
	}
	return n
}

// ended reports whether the execution is over.
func (r *execution) ended() bool {
	k := r.dominant().kind
	return r.replaced || k != TaskCustom && k != TaskStarted && k != TaskReceived
}

// add makes e, which follows all events before it, the event of its kind.
func (r *execution) add(e *record) {
	r.byKind[e.kind] = e
	if e.micros < r.first {
		r.first = e.micros
	}
}

// newExecution starts an execution with the event e.
func newExecution(e *record) execution {
	r := execution{process: e.process, first: e.micros, clock: e.clock}
	if e.kind == TaskReceived {
		r.received, r.attempt = true, int64(e.n)
	}
	r.add(e)
	return r
}

// causal folds the events of one task as a set: no step may look at their order of arrival.
type causal struct {
	processes *table[clock.Process]

	first        *record       // task-received of the task's first message
	replacements []replacement // by time
	republished  []*record     // task-sent of replacements, by time

	sent         []*record // task-sent events
	workerEvents []*record // worker events
	unattributed []*record // custom events from a pool child, and revocations of what no worker had taken
	executions   []execution
	redelivered  bool // some attempt was received again after it had begun
}

// fold sorts the records of a task into executions, oldest first.
func (f *causal) fold(records []*record) {
	f.sent, f.workerEvents, f.unattributed, f.executions, f.redelivered = f.sent[:0], f.workerEvents[:0], f.unattributed[:0], f.executions[:0], false
	for _, r := range records {
		if r.kind == TaskSent {
			f.sent = append(f.sent, r)
		} else {
			f.workerEvents = append(f.workerEvents, r)
		}
	}
	f.findReplacements()
	slices.SortFunc(f.workerEvents, func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.process, b.process), byTime(a, b))
	})
	for rest := f.workerEvents; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].process == rest[0].process {
			n++
		}
		f.splitProcess(rest[:n])
		rest = rest[n:]
	}
	f.inferAttempts()
	f.attributeCustom()
	slices.SortFunc(f.executions, func(a, b execution) int { return f.compareExecutions(&a, &b) })
	f.attributeRevocations()
	f.markReplaced()
	f.markRedelivered()
}

// byTime orders the events of one process by timestamp.
func byTime(a, b *record) int {
	return cmp.Or(cmp.Compare(a.micros, b.micros), cmp.Compare(a.clock, b.clock), cmp.Compare(a.kind, b.kind), cmp.Compare(a.n, b.n))
}

// byClock orders the events of one process by raw clock: happened-before.
func byClock(a, b *record) int {
	return cmp.Or(cmp.Compare(a.clock, b.clock), cmp.Compare(a.micros, b.micros), cmp.Compare(a.kind, b.kind), cmp.Compare(a.n, b.n))
}

// splitProcess splits the events of one pid, given by time, into incarnations of that pid, and those into
// executions. An incarnation ends where the clock drops although time has gone on: a container restarts under the
// pid it had. Only an incarnation that began with a task-received can end so, or a wall clock set back would look
// the same. If an event has no clock, all of them stay in order of time.
func (f *causal) splitProcess(events []*record) {
	if slices.ContainsFunc(events, func(e *record) bool { return e.clock == 0 }) {
		f.splitIncarnation(events)
		return
	}
	newest, received := 0, events[0].kind == TaskReceived
	for i, e := range events {
		if top := events[newest]; e.clock < top.clock && e.micros > top.micros+clock.RestartGap && received {
			f.splitProcess(events[i:])
			events = events[:i]
			break
		}
		if e.clock > events[newest].clock {
			newest = i
		}
		received = received || e.kind == TaskReceived
	}
	slices.SortFunc(events, byClock)
	f.splitIncarnation(events)
}

// splitIncarnation sorts the events of one incarnation, given in order, into executions: each belongs to the last
// task-received before it, unless the worker was ahead of its own reports.
func (f *causal) splitIncarnation(events []*record) {
	child := true
	for _, e := range events {
		child = child && (e.kind == TaskCustom || e.kind == TaskRevoked)
	}
	if child {
		f.unattributed = append(f.unattributed, events...)
		return
	}
	first := len(f.executions)
	for _, e := range events {
		current := len(f.executions) - 1
		switch {
		case e.kind == TaskReceived || current < first:
			r := newExecution(e)
			r.generation = f.generation(e)
			f.executions = append(f.executions, r)
		case e.kind == TaskStarted, e.kind == TaskRetried:
			f.reportedBy(f.executions[first:], e.kind).add(e)
		case e.kind == TaskRevoked && f.isOver(&f.executions[current], e):
			f.unattributed = append(f.unattributed, e) // it concerns the next attempt, which the worker never received
		default:
			f.executions[current].add(e)
		}
	}
}

// isOver reports whether the execution r had ended, but not for good, when its worker revoked the task: it was
// retried or replaced.
func (f *causal) isOver(r *execution, revoked *record) bool {
	replaced := slices.ContainsFunc(f.replacements, func(x replacement) bool {
		return x.generation > r.generation && x.received.micros <= revoked.micros
	})
	return (r.byKind[TaskRetried] != nil || replaced) && !r.final()
}

// reportedBy returns the execution that a task-started or task-retried belongs to, of those that a process has
// begun so far: the earliest attempt whose report is still due. A worker with a free child may receive the next
// attempt before it reports that the last one has started, and may even have finished it before it reports the
// retry that led to it (seen with Celery 5.7).
func (f *causal) reportedBy(executions []execution, kind Kind) *execution {
	var best *execution
	newest := &executions[len(executions)-1]
	for i := range executions {
		r := &executions[i]
		started := r.byKind[TaskStarted] != nil
		if r.ended() || kind == TaskStarted && started || r.received && f.isPast(r, started, newest) {
			continue
		}
		if best == nil || !best.before(r) {
			best = r
		}
	}
	if best == nil {
		return newest
	}
	return best
}

// isPast reports whether no report of the execution r will follow: it was requeued before it started, as after a
// lost connection, and delivered again; the attempt after it was missed, and so were its reports; or it was
// replaced.
func (f *causal) isPast(r *execution, started bool, newest *execution) bool {
	again, next := false, !r.before(newest) || !started && r.generation < newest.generation
	for _, e := range f.workerEvents {
		if e.kind == TaskReceived && f.generation(e) == r.generation {
			again = again || int64(e.n) == r.attempt && e.micros > r.byKind[TaskReceived].micros
			next = next || int64(e.n) == r.attempt+1
		}
	}
	return again && !started || !next
}

// final reports whether the execution ended for good, other than by a retry.
func (r *execution) final() bool {
	return r.byKind[TaskSucceeded] != nil || r.byKind[TaskFailed] != nil
}

// inferAttempts gives executions without a task-received the highest attempt that had begun by their first event.
func (f *causal) inferAttempts() {
	for i := range f.executions {
		if r := &f.executions[i]; !r.received {
			r.generation, r.attempt = f.attemptAt(r.first)
		}
	}
}

func (f *causal) attemptAt(micros int64) (generation int, attempt int64) {
	var newest execution
	for i := range f.executions {
		if r := &f.executions[i]; r.received && r.byKind[TaskReceived].micros <= micros && newest.before(r) {
			newest = *r
		}
	}
	return newest.generation, newest.attempt
}

// before reports whether the attempt of r comes before that of o.
func (r *execution) before(o *execution) bool {
	return cmp.Or(cmp.Compare(r.generation, o.generation), cmp.Compare(r.attempt, o.attempt)) < 0
}

// attributeCustom gives custom events of pool children to the execution that ran on their host at the time.
func (f *causal) attributeCustom() {
	slices.SortFunc(f.unattributed, f.compareRecords)
	known := len(f.executions)
	for _, e := range f.unattributed {
		if e.kind != TaskCustom {
			continue
		}
		host, best := f.processes.key(e.process).Hostname, -1
		for i := range f.executions {
			if f.processes.key(f.executions[i].process).Hostname != host {
				continue
			}
			if best < 0 || f.closer(&f.executions[i], &f.executions[best], e.micros) {
				best = i
			}
		}
		switch {
		case best < 0:
			r := newExecution(e)
			r.generation, r.attempt = f.attemptAt(e.micros)
			f.executions = append(f.executions, r)
		case best >= known:
			f.executions[best].add(e)
		default:
			if old := f.executions[best].byKind[TaskCustom]; old == nil || byTime(old, e) <= 0 {
				f.executions[best].byKind[TaskCustom] = e
			}
		}
	}
}

// closer reports whether a is more likely than b to have been running at micros: the last that had begun, or the
// first of all.
func (f *causal) closer(a, b *execution, micros int64) bool {
	if aBegun, bBegun := a.first <= micros, b.first <= micros; aBegun != bBegun {
		return aBegun
	} else if !aBegun {
		return f.compareExecutions(a, b) < 0
	}
	return cmp.Or(cmp.Compare(a.first, b.first), f.compareExecutions(a, b)) > 0
}

// compareRecords orders unattributed events of all processes.
func (f *causal) compareRecords(a, b *record) int {
	return cmp.Or(cmp.Compare(a.micros, b.micros), f.processes.key(a.process).Compare(f.processes.key(b.process)), byClock(a, b))
}

// compareExecutions orders executions by message and attempt, then by the timestamp of their first event, then by
// process.
func (f *causal) compareExecutions(a, b *execution) int {
	return cmp.Or(cmp.Compare(a.generation, b.generation), cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.first, b.first),
		f.processes.key(a.process).Compare(f.processes.key(b.process)), cmp.Compare(a.clock, b.clock))
}

// attributeRevocations gives revocations by workers that never received the task to its newest attempt. After a
// retry that is the attempt that waits: whoever received it discarded it without a task-received.
func (f *causal) attributeRevocations() {
	for _, e := range f.unattributed {
		if e.kind != TaskRevoked {
			continue
		}
		if last := len(f.executions) - 1; last >= 0 && (f.executions[last].byKind[TaskRetried] == nil || f.executions[last].final()) {
			if old := f.executions[last].byKind[TaskRevoked]; old == nil || f.compareRecords(old, e) <= 0 {
				f.executions[last].byKind[TaskRevoked] = e
			}
			continue
		}
		r := newExecution(e)
		if last := len(f.executions) - 1; last >= 0 {
			r.generation, r.attempt = f.executions[last].generation, f.executions[last].attempt+1
		} else {
			for _, s := range f.sent {
				r.attempt = max(r.attempt, int64(s.n))
			}
		}
		f.executions = append(f.executions, r)
	}
}

// markRedelivered notes whether an attempt was received again after it had started: a message that a worker
// returns before it starts the task is executed once.
func (f *causal) markRedelivered() {
	begun := false
	for i := range f.executions {
		r := &f.executions[i]
		if i > 0 && f.executions[i-1].before(r) {
			begun = false
		}
		f.redelivered = f.redelivered || begun && r.received
		begun = begun || r.dominant().kind != TaskReceived
	}
}

// newest returns the execution that the task shows, nil if no worker has received it.
func (f *causal) newest() *execution {
	if len(f.executions) == 0 {
		return nil
	}
	return &f.executions[len(f.executions)-1]
}

// source returns the task-sent that the newest execution came from: that of its attempt, or of the nearest before
// it, or any; nil if none was seen.
func (f *causal) source() *record {
	var best *record
	for _, s := range f.sent {
		if best == nil || f.nearer(s, best) {
			best = s
		}
	}
	return best
}

// nearer reports whether the newest execution is more likely to have come from the task-sent a than from b.
func (f *causal) nearer(a, b *record) bool {
	attempt, r := int64(1<<62), f.newest()
	if r != nil {
		attempt = r.attempt
	}
	if aFits, bFits := f.fits(a, r), f.fits(b, r); aFits != bFits {
		return aFits
	}
	if opened := f.opening(r); opened != nil && a.n == 0 && b.n == 0 {
		if aBefore, bBefore := a.micros <= opened.micros, b.micros <= opened.micros; aBefore != bBefore {
			return aBefore
		}
	}
	if aIn, bIn := int64(a.n) <= attempt, int64(b.n) <= attempt; aIn != bIn {
		return aIn
	} else if a.n != b.n {
		return (a.n > b.n) == aIn
	}
	return f.compareRecords(a, b) > 0
}
