package simulate

import (
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/idempotency"
	"github.com/umbelhq/umbel/state"
)

// execution is one attempt at a task on one worker process.
type execution struct {
	m     *message
	w     *worker
	main  *process // the worker process that took it
	child *process // that runs it, nil before

	index     int  // in w.executions
	credit    bool // it holds one of the worker's credits
	acked     bool // the broker has forgotten the message, or given it to another worker
	orphan    bool // given to another worker, but it runs on here
	announced bool // its worker said that it received it
	began     bool
	ended     bool
	lost      bool   // the process dropped it without an event
	revoke    bool   // its worker was told to revoke it
	fault     *fault // that its time limit leads to, nil for none
	lock      string // key of the lock that it has taken, empty if none
	value     idempotency.LockValue
	result    string // empty: the kind makes it up

	startedAt, endsAt int64
	state             state.State // of its dominant event, empty if none was published
}

// gone reports whether nothing more can come of x.
func (x *execution) gone() bool { return x.ended || x.w.main != x.main }

// event starts an event about x by its worker.
func (x *execution) event() event { return newEvent(x.main, x.w.name).str("uuid", x.m.task.id) }

// receive takes a message from the broker.
func (w *worker) receive(m *message) {
	x := &execution{m: m, w: w, main: w.main, credit: true, index: len(w.executions)}
	w.executions = append(w.executions, x)
	m.task.executions = append(m.task.executions, x)
	if w.pool == solo {
		w.inbox = append(w.inbox, x)
		w.turn()
		return
	}
	w.announce(x)
}

// announce publishes that x was received, and queues it for its ETA or for the pool.
func (w *worker) announce(x *execution) {
	m, t := x.m, x.m.task
	if t.kind.unknown {
		w.publishTaskEvent(x, state.Failure, "task-failed", x.event().str("exception", "NotRegistered('"+t.kind.name+"')"))
		w.forget(x)
		return
	}
	if w.revoked(x) {
		return
	}
	x.announced = true
	w.publishTaskEvent(x, state.Received, "task-received", x.event().str("name", t.kind.name).str("args", t.args).
		str("kwargs", t.kwargs).str("root_id", t.root).opt("parent_id", m.parent).num("retries", m.retries).
		date("eta", m.eta).date("expires", m.expires))
	if wait := m.eta - w.c.wall(w.host); wait > 0 {
		x.release() // held messages do not count
		w.c.after(time.Duration(wait), func() {
			if !x.gone() && !w.stopping {
				w.queueUp(x)
			}
		})
		return
	}
	w.queueUp(x)
}

// queueUp lets x wait for the pool, once the rate limit of its task allows.
func (w *worker) queueUp(x *execution) {
	wait := w.limits[x.m.task.kind.name].delay(w.c.now)
	if wait == 0 {
		w.enter(x)
		return
	}
	w.c.after(wait, func() {
		if !x.gone() && !w.stopping {
			w.enter(x)
		}
	})
}

func (w *worker) enter(x *execution) {
	w.waiting = append(w.waiting, x)
	if w.pool == solo {
		w.turn()
	} else {
		w.fill()
	}
}

// fill starts waiting executions while the pool has room.
func (w *worker) fill() {
	for len(w.idle) > 0 && len(w.waiting) > 0 && !w.stopping {
		x := w.waiting[0]
		w.waiting = w.waiting[1:]
		if w.revoked(x) {
			continue
		}
		w.apply(x)
	}
}

// apply hands x to an idle child, which begins it a little later.
func (w *worker) apply(x *execution) {
	last := len(w.idle) - 1
	x.child = w.idle[last]
	w.idle = w.idle[:last]
	w.c.after(300*time.Microsecond+w.c.rng.exp(500*time.Microsecond), func() {
		if !x.gone() {
			w.begin(x)
		}
	})
}

// turn is one turn of a solo worker's loop, which runs each message as it reads it, and looks after
// its buffer and its heartbeat only in between.
func (w *worker) turn() {
	for !w.blocked && !w.stopping {
		switch {
		case len(w.waiting) > 0:
			x := w.waiting[0]
			w.waiting = w.waiting[1:]
			if !w.revoked(x) {
				w.apply(x)
				w.blocked = true
			}
		case len(w.inbox) > 0:
			x := w.inbox[0]
			w.inbox = w.inbox[1:]
			w.announce(x)
		default:
			return
		}
	}
}

// revoked ends x with a task-revoked if it was revoked or has expired.
func (w *worker) revoked(x *execution) bool {
	_, told := w.revokes[x.m.task.id]
	expired := x.m.expires != 0 && w.c.wall(w.host) > x.m.expires
	if !expired && !x.revoke && !told {
		return false
	}
	about := x
	if seen := x.m.task.executions; !x.announced && len(seen) > 1 {
		about = seen[len(seen)-2] // x was never received: this ends the one before
	}
	e := x.event().raw("terminated", "false").raw("signum", "null")
	switch {
	case expired:
		e = e.raw("expired", "true")
	case x.m.expires != 0:
		e = e.raw("expired", "null") // maybe_expire returns None
	default:
		e = e.raw("expired", "false")
	}
	w.publishTaskEvent(about, state.Revoked, "task-revoked", e)
	w.forget(x)
	return true
}

// begin runs x in its child.
func (w *worker) begin(x *execution) {
	k := x.m.task.kind
	x.began = true
	w.active++
	w.processed++
	w.totals[k.name]++
	w.publishTaskEvent(x, state.Started, "task-started", x.event())
	if !k.late {
		x.acked = true
		x.release()
	}
	length := w.c.rng.logNormal(k.median, k.sigma)
	if l := w.limits[k.name]; l != nil && l.hard != nil {
		if hard := time.Duration(*l.hard * float64(time.Second)); hard < length {
			length, x.fault = hard, exceeded(*l.hard)
		}
	}
	if !w.acquire(x) {
		length = skipTime
	} else if x.m.task.dies {
		x.fault = killed()
	}
	if w.c.hangs(x) {
		length = hungFor
	}
	x.startedAt, x.endsAt = w.c.now, w.c.now+int64(length)
	for i := range k.steps {
		w.c.after(length*time.Duration(i+1)/time.Duration(k.steps+1), func() { w.progress(x, i+1) })
	}
	w.c.at(x.endsAt, func() {
		if !x.gone() {
			w.finish(x)
		}
	})
}

// progress is a custom event that the task sends from its child.
func (w *worker) progress(x *execution, step int) {
	if x.gone() {
		return
	}
	e := newEvent(x.child, w.name).str("uuid", x.m.task.id).num("current", int64(step)).num("total", int64(x.m.task.kind.steps+1))
	w.c.publish(x.child, "task.progress", e.end(w.c.wall(w.host), "task-progress"))
	x.observe("PROGRESS")
}

// finish is the end of x in its child. The main process reports it a little later.
func (w *worker) finish(x *execution) {
	c, t := w.c, x.m.task
	f := t.kind.fault(c.rng, x)
	if broken := c.broken(x); broken != nil {
		f = broken
	}
	if x.fault != nil {
		f = x.fault
	}
	w.release(x, f)
	delay := 300*time.Microsecond + c.rng.exp(time.Millisecond)
	switch {
	case f == nil && t.then != nil:
		then := t.then
		t.then = nil // the first of two runs continues the workflow
		then(x.child, x.m)
	case f != nil && f.how == retries && x.m.retries < t.kind.retries:
		f = w.retry(x, *f, delay)
	}
	if w.pool == solo {
		w.report(x, f)
		w.blocked = false
		for _, execute := range w.deferred {
			execute()
		}
		w.deferred = nil
		if w.heartbeatDue || w.c.rng.chance(0.5) {
			w.flush()
		}
		if w.heartbeatDue {
			w.sendHeartbeat("worker.heartbeat", "worker-heartbeat")
		}
		w.turn()
		return
	}
	c.after(delay, func() {
		if !x.gone() {
			w.report(x, f)
		}
	})
}

// retry publishes the next attempt, which is in its queue after the worker's own report.
func (w *worker) retry(x *execution, f fault, report time.Duration) *fault {
	c, m := w.c, *x.m
	x.acked = true
	m.retries++
	m.parent = m.task.id
	m.not = nil
	countdown := time.Duration(1+c.rng.IntN(2<<min(m.retries, 4))) * time.Second
	m.eta = c.wall(w.host) + int64(countdown)
	f.traceback = strings.ReplaceAll(f.again, "{s}", strconv.Itoa(int(countdown/time.Second)))
	c.submit(client{process: x.child}, &m, report+time.Millisecond+c.rng.latency())
	return &f
}

// report is the main process's event about the end of x: success if f is nil.
func (w *worker) report(x *execution, f *fault) {
	t := x.m.task
	if f == nil {
		result := x.result
		if result == "" {
			result = t.kind.result(w.c.rng)
		}
		seconds := w.monotonic(x.endsAt) - w.monotonic(x.startedAt)
		w.publishTaskEvent(x, state.Success, "task-succeeded", x.event().str("result", result).float("runtime", seconds))
		w.forget(x)
		return
	}
	n := strconv.Itoa(w.c.rng.upTo(10_000, 99_999))
	exception, traceback := strings.ReplaceAll(f.exception, "{n}", n), strings.ReplaceAll(f.traceback, "{n}", n)
	switch {
	case f.how == rejects:
		if !w.host.legacy {
			w.publishTaskEvent(x, state.Failure, "task-failed", x.event().str("exception", exception).str("traceback", traceback))
		}
		w.publishTaskEvent(x, state.Rejected, "task-rejected", x.event().raw("requeue", "false"))
	case f.how == retries && x.m.retries < t.kind.retries:
		w.publishTaskEvent(x, state.Retry, "task-retried", x.event().str("exception", exception).str("traceback", traceback))
	default:
		w.publishTaskEvent(x, state.Failure, "task-failed", x.event().str("exception", exception).str("traceback", traceback))
	}
	if f.how == dies && w.pool == prefork {
		x.child = w.c.spawn(w.host)
	}
	w.forget(x)
}

// monotonic is Python's time.monotonic at t, whose differences make runtimes.
func (w *worker) monotonic(t int64) float64 {
	return 90_000 + float64(t-w.c.opts.Start.UnixNano())/1e9
}

// terminate kills the child that runs x, on somebody's revoke(terminate=True).
func (w *worker) terminate(x *execution) {
	w.publishTaskEvent(x, state.Revoked, "task-revoked", x.event().raw("terminated", "true").num("signum", 15).raw("expired", "false"))
	x.child = w.c.spawn(w.host)
	w.forget(x)
}

// release returns the credit that x holds.
func (x *execution) release() {
	if x.credit {
		x.credit = false
		if !x.orphan {
			x.w.credit++
			x.w.route()
		}
	}
}

// forget is the end of x on its worker.
func (w *worker) forget(x *execution) {
	last := len(w.executions) - 1
	w.executions[x.index] = w.executions[last]
	w.executions[x.index].index = x.index
	w.executions = w.executions[:last]
	x.ended, x.acked = true, true
	w.c.open--
	if x.child != nil {
		w.idle = append(w.idle, x.child)
	}
	if x.began {
		w.active--
	}
	x.release()
	if w.pool != solo {
		w.fill()
	}
}
