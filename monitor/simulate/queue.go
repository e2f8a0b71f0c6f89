package simulate

import "time"

// task is one task of the shop: what its attempts have in common.
type task struct {
	id, root     string
	kind         *kind
	args, kwargs string
	sent         bool // a task-sent event has been published
	then         func(p *process, m *message)
	dies         bool // its child is killed in mid-run
	executions   []*execution
}

// message is one task message: an attempt at a task.
type message struct {
	task         *task
	retries      int64
	parent       string   // id, empty if it has none; a retry has itself for a parent, as in Celery
	eta, expires int64    // by the publisher's wall clock, ns since 1970 UTC; 0 if it has none
	not          *process // a process that still runs it
}

// queue is a queue of the broker with its consumers, who take turns.
type queue struct {
	c         *Cluster
	name      string
	ready     []*message
	consumers []*worker
	turn      int

	published, delivered int64
}

// put adds a message and lets it go to a consumer that has room.
func (q *queue) put(m *message) {
	q.ready = append(q.ready, m)
	q.published++
	q.route()
}

// route sends ready messages to consumers until one or the other runs out.
func (q *queue) route() {
	for len(q.ready) > 0 {
		m := q.ready[0]
		w := q.consumer(m)
		if w == nil {
			return
		}
		q.ready[0] = nil
		q.ready = q.ready[1:]
		q.delivered++
		w.credit--
		main := w.main
		q.c.after(q.c.rng.latency(), func() {
			if w.main == main && w.consuming() {
				w.receive(m)
			} else {
				q.put(m)
			}
		})
	}
}

// consumer returns the worker whose turn it is to receive m, nil if none can.
//
// A message never goes back to a process that still runs it, although a real broker would do so: the
// events of two such runs cannot be told apart, so there would be no truth to compare with.
func (q *queue) consumer(m *message) *worker {
	for range q.consumers {
		w := q.consumers[q.turn%len(q.consumers)]
		q.turn++
		if w.consuming() && w.credit > 0 && w.main != m.not {
			return w
		}
	}
	return nil
}

// call is a new task as its publisher describes it.
type call struct {
	kind         *kind
	args, kwargs string // empty: the kind makes them up
	root, parent string
	countdown    time.Duration
	expires      time.Duration
	then         func(p *process, m *message)
	dies         bool
}

// send creates a task and publishes its first message.
func (c *Cluster) send(from client, call call) {
	t := &task{id: c.rng.id(c.salt), root: call.root, kind: call.kind, args: call.args, kwargs: call.kwargs, then: call.then, dies: call.dies}
	if t.root == "" {
		t.root = t.id
	}
	if t.args == "" {
		t.args, t.kwargs = t.kind.call(c.rng)
	}
	if t.kwargs == "" {
		t.kwargs = "{}"
	}
	m := &message{task: t, parent: call.parent}
	if call.countdown > 0 {
		m.eta = c.wall(from.host) + int64(call.countdown)
	}
	if call.expires > 0 {
		m.expires = c.wall(from.host) + int64(call.expires)
	}
	if c.opts.Truth {
		c.tasks = append(c.tasks, t)
	}
	c.submit(from, m, c.rng.latency())
}

// submit publishes a task message, which is in its queue after delay, and says so in an event.
func (c *Cluster) submit(from client, m *message, delay time.Duration) {
	c.open++
	t := m.task
	if !from.eventsDisabled {
		e := newEvent(from.process, from.node()).str("uuid", t.id).str("root_id", t.root).opt("parent_id", m.parent).
			str("name", t.kind.name).str("args", t.args).str("kwargs", t.kwargs).num("retries", m.retries).
			date("eta", m.eta).date("expires", m.expires).
			str("queue", t.kind.queue).str("exchange", "").str("routing_key", t.kind.queue)
		c.publish(from.process, "task.sent", e.end(c.wall(from.host), "task-sent"))
		t.sent = true
	}
	q := c.queues[t.kind.queue]
	c.after(delay, func() { q.put(m) })
}

// requeue puts a message that a consumer never acknowledged back into its queue.
func (c *Cluster) requeue(m *message, main *process, delay time.Duration) {
	c.open++
	again := *m
	again.not = main
	c.after(delay, func() { c.queues[m.task.kind.queue].put(&again) })
}
