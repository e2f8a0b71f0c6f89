package simulate

import (
	"fmt"
	"math"
	"time"
)

// setUp creates hosts, queues, workers and clients, and plans the first incidents.
func (c *Cluster) setUp() {
	web := &host{name: "web-1", skew: int64(3 * time.Millisecond), utcoffset: "0.0", version: "5.7.0", pid: 4_700}
	berlin := &host{name: "jobs-1", skew: int64(1800 * time.Millisecond), utcoffset: "-1.0", version: "5.7.0", pid: 880}
	old := &host{name: "jobs-2", skew: int64(-700 * time.Millisecond), utcoffset: "0", version: "5.6.3", legacy: true, pid: 23_100}
	c.hosts = []*host{web, berlin, old}
	c.requests = requests()
	for _, h := range []*host{web, web, web, berlin} {
		c.clients = append(c.clients, client{process: c.spawn(h)})
	}
	c.clients = append(c.clients, client{process: c.spawn(old), eventsDisabled: true})

	c.queues = make(map[string]*queue)
	usual := c.opts.DefaultQueue
	for _, name := range []string{usual, "billing", "mail", "images", "reports"} {
		c.declare(name)
	}
	roles := []role{
		{name: "celery@web-1", host: web, slots: 4, queues: []string{usual, "billing"}, gossip: true},
		{name: "celery@jobs-1", host: berlin, slots: 6, queues: []string{usual, "mail", "billing"}, gossip: true, cancels: true},
		{name: "celery@jobs-2", host: old, slots: 6, queues: []string{usual, "images"}, gossip: true},
		{name: "media@jobs-1", host: berlin, slots: 5, queues: []string{"images", "reports"}},
		{name: "mail@jobs-2", host: old, slots: 20, pool: gevent, queues: []string{"mail"}},
		{name: "reports@web-1", host: web, slots: 1, pool: solo, queues: []string{"reports"}},
	}
	for i := len(roles); i < c.opts.Workers; i++ {
		h := c.hosts[i%len(c.hosts)]
		roles = append(roles, role{name: fmt.Sprintf("extra%d@%s", i-minWorkers+1, h.name), host: h, slots: 4, queues: []string{usual, "images"}})
	}
	for _, r := range roles {
		if r.pool != solo {
			r.slots *= int(math.Ceil(max(1, c.opts.Rate/20)))
		}
		c.addWorker(r)
	}
	c.after(100*time.Millisecond, c.arrive)
	c.scheduleIncidents()
	c.scheduleBeat()
	if c.opts.Duplicates {
		c.scheduleCharges()
	}
	if c.opts.Locks != nil {
		c.scheduleLocks()
	}
}

// declare returns the queue of a name, a new one if there is none.
func (c *Cluster) declare(name string) *queue {
	q := c.queues[name]
	if q == nil {
		q = &queue{c: c, name: name}
		c.queues[name] = q
		if c.opts.Declared != nil {
			c.opts.Declared(name)
		}
	}
	return q
}

// addWorker adds a worker. Most have been running for a while when the simulation begins.
func (c *Cluster) addWorker(r role) {
	w := &worker{role: r, c: c}
	for _, name := range r.queues {
		q := c.queues[name]
		q.consumers = append(q.consumers, w)
		w.queues = append(w.queues, q)
	}
	c.workers = append(c.workers, w)
	if r.gossip {
		c.gossiping = append(c.gossiping, w)
	}
	if r.name == "celery@jobs-1" {
		c.after(c.rng.between(0, time.Second), w.start)
		return
	}
	w.boot()
	w.processed = int64(c.rng.upTo(300, 4_000))
	w.main.clock += w.processed*4 + int64(c.rng.upTo(500, 9_000))
	w.startHeartbeats(c.rng.between(0, heartbeatEvery))
}

// scheduleIncidents plans failures, and what users do about them.
func (c *Cluster) scheduleIncidents() {
	web, jobs1, jobs2, media := c.workers[0], c.workers[1], c.workers[2], c.workers[3]
	const s = time.Second
	c.scheduleIncident(70*s, 100*s, 200*s, 400*s, media.crash)
	c.scheduleIncident(140*s, 170*s, 300*s, 500*s, jobs2.restart)
	c.scheduleIncident(190*s, 220*s, 240*s, 480*s, web.loseBroker)
	c.scheduleIncident(240*s, 270*s, 240*s, 480*s, jobs1.loseBroker)
	c.scheduleIncident(20*s, 40*s, 15*s, 45*s, c.revokeWaiting)
	c.scheduleIncident(30*s, 60*s, 40*s, 90*s, c.revokeRunning)
	c.scheduleIncident(50*s, 80*s, 60*s, 150*s, c.burst)
	c.scheduleIncident(45*s, 75*s, 90*s, 240*s, func() bool {
		c.redeliver(c.rng.upTo(3, len(c.recent)))
		return true
	})
}

// scheduleBeat plans what Celery beat sends at regular intervals.
func (c *Cluster) scheduleBeat() {
	const s = time.Second
	beat := client{process: c.spawn(c.hosts[0])}
	every := func(period time.Duration, name, args string) {
		c.periodic += 1 / period.Seconds()
		var play func()
		play = func() {
			if !c.ended() {
				c.send(beat, call{kind: c.kinds[name], args: args, expires: time.Hour})
				c.after(period, play)
			}
		}
		c.after(period/2, play)
	}
	every(10*s, "carts.expire", "()")
	every(30*s, "inventory.recount", "('berlin',)")
	every(30*s, "inventory.recount", "('porto',)")
	every(45*s, "reports.nightly", "")
}

// scheduleIncident runs act between first and last, and again each lo to hi after it. If act returns false, it is
// tried again soon.
func (c *Cluster) scheduleIncident(first, last, lo, hi time.Duration, act func() bool) {
	var play func()
	play = func() {
		switch {
		case c.ended():
		case act():
			c.after(c.rng.between(lo, hi), play)
		default:
			c.after(250*time.Millisecond, play)
		}
	}
	c.after(c.rng.between(first, last), play)
}

// runs reports whether w runs a task of which ok holds.
func (w *worker) runs(ok func(x *execution) bool) bool { return w.find(ok) != nil }

func (w *worker) find(ok func(x *execution) bool) *execution {
	for _, x := range w.executions {
		if x.began && x.endsAt > w.c.now && ok(x) {
			return x
		}
	}
	return nil
}

// crash ends w without a worker-offline while it runs tasks that are lost and others that are not.
func (w *worker) crash() bool {
	if w.main == nil || !w.runs(func(x *execution) bool { return x.acked }) || !w.runs(func(x *execution) bool { return !x.acked }) {
		return false
	}
	w.kill(redeliverAfter + w.c.rng.between(0, 5*time.Second))
	w.c.after(w.c.rng.between(8*time.Second, 20*time.Second), w.start)
	return true
}

// restart stops w warmly while it runs tasks. It comes back by itself.
func (w *worker) restart() bool {
	if !w.consuming() || !w.runs(func(*execution) bool { return true }) {
		return false
	}
	w.stop()
	return true
}

// loseBroker disconnects w while it runs a task that will be delivered again.
func (w *worker) loseBroker() bool {
	if !w.consuming() || !w.runs(func(x *execution) bool { return !x.acked }) {
		return false
	}
	w.disconnect()
	return true
}

// revokeWaiting revokes a task that waits for its time.
func (c *Cluster) revokeWaiting() bool {
	w := pick(c.rng, c.workers)
	for _, x := range w.executions {
		if x.m.eta > c.wall(w.host)+int64(time.Second) && !x.revoke {
			x.revoke = true
			return true
		}
	}
	return false
}

// revokeRunning revokes a running task with terminate.
func (c *Cluster) revokeRunning() bool {
	w := pick(c.rng, c.workers)
	if w.pool != prefork || !w.consuming() {
		return false
	}
	x := w.find(func(x *execution) bool { return x.endsAt-c.now > int64(time.Second) })
	if x == nil {
		return false
	}
	w.terminate(x)
	return true
}
