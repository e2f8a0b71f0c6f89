package simulate

import (
	"math"
	"slices"
	"time"

	"github.com/umbelhq/umbel/state"
)

const (
	heartbeatEvery = 2 * time.Second
	batchLimit     = 24 // Celery's buffer_limit
	prefetch       = 4  // messages per pool process (worker_prefetch_multiplier)

	// redeliverAfter is the least time after which a message is given to another worker. It exceeds
	// the difference of any two wall clocks, so that timestamps too say which execution is newer.
	redeliverAfter = 4 * time.Second
)

// pool is how a worker runs tasks and so how it publishes events.
type pool uint8

const (
	prefork pool = iota // batches of task events
	gevent              // every event by itself
	solo                // batches, but nothing at all while a task runs
)

// role is a worker's part in the simulation.
type role struct {
	name    string
	host    *host
	pool    pool
	slots   int
	queues  []string
	gossip  bool // its clock follows the other workers
	cancels bool // cancels running tasks when it loses the broker
}

// worker is one worker by node name, through all the processes that it has been.
type worker struct {
	role
	c      *Cluster
	queues []*queue

	// Of the process that lives now.
	main           *process   // nil while it is down
	idle           []*process // pool children without a task
	credit         int        // messages that it may take before it acknowledges one
	executions     []*execution
	inbox          []*execution // solo: delivered, but not read
	waiting        []*execution // received, to be run when the pool has room
	buffer         []report
	flushing       bool // a flush is planned
	backlog        []outgoing
	connected      bool
	stopping       bool
	blocked        bool     // solo, and a task runs
	deferred       []func() // commands that came meanwhile
	commanded      int64    // when the newest command arrives
	heartbeatDue   bool     // a heartbeat is due as soon as it is no longer blocked
	active         int
	processed      int64
	totals         map[string]int64 // of processed, by name, since the start of the simulation
	bootedAt       int64
	revokes        map[string]struct{} // ids of revoked tasks
	limits         map[string]*limit   // by task
	eventsDisabled bool                // task events are off
}

// report is a task event that waits in the buffer, and the state it gives its execution.
type report struct {
	body  []byte
	x     *execution
	state state.State
}

// outgoing is a message that waits for the broker to come back.
type outgoing struct {
	key     string
	body    []byte
	reports []report
}

func (w *worker) consuming() bool { return w.main != nil && w.connected && !w.stopping }

// boot starts a new process, with a clock near 0 unless its neighbours know better.
func (w *worker) boot() {
	*w = worker{role: w.role, c: w.c, queues: w.queues, connected: true, bootedAt: w.c.now}
	w.totals, w.limits, w.revokes = map[string]int64{}, map[string]*limit{}, map[string]struct{}{}
	w.main = w.c.spawn(w.host)
	w.credit = prefetch * w.slots
	w.idle = make([]*process, 0, w.slots)
	for range w.slots {
		child := w.main
		if w.pool == prefork {
			child = w.c.spawn(w.host)
		}
		w.idle = append(w.idle, child)
	}
	if w.gossip {
		for _, g := range w.c.gossiping {
			if g != w && g.main != nil {
				w.main.clock = max(w.main.clock, g.main.clock) // mingle
			}
		}
	}
}

// start boots and publishes worker-online.
func (w *worker) start() {
	if w.c.over() {
		return
	}
	w.boot()
	w.sendHeartbeat("worker.online", "worker-online")
	w.startHeartbeats(heartbeatEvery)
}

// startHeartbeats starts the periodic work of a booted process.
func (w *worker) startHeartbeats(firstBeat time.Duration) {
	main := w.main
	var tick func()
	tick = func() {
		switch {
		case w.main != main || w.stopping:
			return
		case w.c.over():
			w.stop()
			return
		case w.blocked:
			w.heartbeatDue = true
		default:
			w.sendHeartbeat("worker.heartbeat", "worker-heartbeat")
		}
		w.c.after(heartbeatEvery+w.c.rng.between(time.Millisecond, 5*time.Millisecond), tick)
	}
	w.c.after(firstBeat, tick)
	w.route()
}

func (w *worker) route() {
	for _, q := range w.queues {
		q.route()
	}
}

// sendHeartbeat publishes a worker event, which advances the clocks of workers that gossip.
func (w *worker) sendHeartbeat(key, kind string) {
	w.heartbeatDue = false
	h := w.host
	target := 0.15
	for _, other := range w.c.workers {
		if other.host == h && other.main != nil {
			target += 0.4 * float64(other.active)
		}
	}
	loads := append(make([]byte, 0, 32), '[')
	for i, k := range [3]float64{0.08, 0.02, 0.006} {
		if i > 0 {
			loads = append(loads, ", "...)
		}
		h.load[i] += (target - h.load[i]) * k
		loads = appendFloat(loads, math.Round(h.load[i]*100)/100)
	}
	e := newEvent(w.main, w.name).float("freq", heartbeatEvery.Seconds()).num("active", int64(w.active)).
		num("processed", w.processed).raw("loadavg", string(loads)+"]").
		str("sw_ident", "py-celery").str("sw_ver", h.version).str("sw_sys", "Linux")
	clock := w.main.clock
	w.publish(key, e.end(w.c.wall(h), kind))
	if w.connected {
		w.c.after(w.c.rng.latency(), func() { w.c.gossip(w, clock) })
	}
}

// forceHeartbeat publishes what the heartbeat command makes a worker send: less than a heartbeat, at a pace that is not its own.
func (w *worker) forceHeartbeat(arguments) any {
	e := newEvent(w.main, w.name).num("freq", 5).
		str("sw_ident", "py-celery").str("sw_ver", w.host.version).str("sw_sys", "Linux")
	clock := w.main.clock
	w.publish("worker.heartbeat", e.end(w.c.wall(w.host), "worker-heartbeat"))
	w.c.after(w.c.rng.latency(), func() { w.c.gossip(w, clock) })
	return nil
}

// gossip passes the clock of a worker event to the workers that gossip.
func (c *Cluster) gossip(from *worker, clock int64) {
	for _, g := range c.gossiping {
		switch {
		case g.main == nil || !g.connected:
		case g == from:
			g.main.clock++
		default:
			g.main.clock = max(g.main.clock, clock) + 1
		}
	}
}

// publishTaskEvent publishes a task event of x, now or with the next batch.
func (w *worker) publishTaskEvent(x *execution, s state.State, kind string, e event) {
	if w.eventsDisabled {
		return
	}
	r := report{e.end(w.c.wall(w.host), kind), x, s}
	if w.pool == gevent {
		w.publish("task."+kind[len("task-"):], r.body, r)
		return
	}
	w.buffer = append(w.buffer, r)
	if len(w.buffer) >= batchLimit {
		w.flush()
	} else if !w.flushing {
		w.flushing = true
		main := w.main
		w.c.after(w.loop(), func() {
			if w.main == main {
				w.flushing = false
				if !w.blocked {
					w.flush()
				}
			}
		})
	}
}

// loop is the time until the event loop comes round: seldom long, while something hogs it.
func (w *worker) loop() time.Duration {
	if w.c.rng.chance(0.02) {
		return w.c.rng.between(40*time.Millisecond, 600*time.Millisecond)
	}
	return 300*time.Microsecond + w.c.rng.exp(time.Millisecond)
}

// flush publishes the buffer as one array. Celery before 5.7 sends an empty one now and then.
func (w *worker) flush() {
	if len(w.buffer) == 0 {
		return
	}
	size := 0
	for _, r := range w.buffer {
		size += len(r.body) + 2
	}
	body := append(make([]byte, 0, size), '[')
	for i, r := range w.buffer {
		if i > 0 {
			body = append(body, ", "...)
		}
		body = append(body, r.body...)
	}
	w.publish("task.multi", append(body, ']'), w.buffer...)
	w.buffer = nil
	if w.host.legacy && w.c.rng.chance(0.01) {
		w.publish("task.multi", []byte("[]"))
	}
}

// publish sends a message of the main process, or keeps it until the broker is back.
func (w *worker) publish(key string, body []byte, reports ...report) {
	if !w.connected {
		w.backlog = append(w.backlog, outgoing{key, body, reports})
		return
	}
	w.c.publish(w.main, key, body)
	for _, r := range reports {
		r.x.observe(r.state)
	}
}

// stop is a warm shutdown: worker-offline comes first, the last results after it.
func (w *worker) stop() {
	w.stopping = true
	w.sendHeartbeat("worker.offline", "worker-offline")
	main := w.main
	w.c.after(redeliverAfter, func() { w.leave(main) })
}

// leave ends a stopping process as soon as nothing runs any more.
func (w *worker) leave(main *process) {
	if w.main != main {
		return
	}
	if w.active > 0 {
		w.c.after(100*time.Millisecond, func() { w.leave(main) })
		return
	}
	w.flush()
	w.kill(0)
	w.c.after(w.c.rng.between(5*time.Second, 10*time.Second), w.start)
}

// kill ends the process at once. The broker gives its messages to others after notice.
func (w *worker) kill(notice time.Duration) {
	main := w.main
	w.main, w.inbox, w.waiting = nil, nil, nil
	for _, x := range slices.Clone(w.executions) {
		if !x.acked {
			w.c.requeue(x.m, main, notice)
		}
		x.lost = true
		w.forget(x)
	}
	for _, r := range w.buffer {
		r.x.lost = true
	}
	w.buffer = nil
}

// disconnect loses the broker for a while. What waits is dropped and delivered elsewhere; what runs
// and is not acknowledged is delivered elsewhere too, so it runs twice unless the worker cancels it.
func (w *worker) disconnect() {
	w.connected = false
	w.inbox, w.waiting = nil, nil
	for _, x := range slices.Clone(w.executions) {
		if x.acked {
			continue
		}
		w.c.requeue(x.m, w.main, redeliverAfter+w.c.rng.between(0, 3*time.Second))
		x.acked, x.orphan = true, true
		if !x.began {
			x.lost = true
			w.forget(x)
		} else if w.cancels {
			w.publishTaskEvent(x, "CANCELLED", "task-cancelled", newEvent(w.main, w.name).str("uuid", x.m.task.id))
			x.child = w.c.spawn(w.host)
			w.forget(x)
		}
	}
	main := w.main
	w.c.after(w.c.rng.between(3*time.Second, 9*time.Second), func() {
		if w.main != main {
			return
		}
		w.connected, w.credit = true, prefetch*w.slots
		for _, o := range w.backlog {
			w.publish(o.key, o.body, o.reports...)
		}
		w.backlog = nil
		w.route()
	})
}
