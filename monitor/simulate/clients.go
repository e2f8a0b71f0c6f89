package simulate

import (
	"math"
	"time"
)

// tasksPerRequest is how many tasks a request of a client leads to, on average and with its share of
// bursts and of the clock-driven reports. A test compares it with the simulation.
const tasksPerRequest = 1.5

// client is a process that publishes tasks.
type client struct {
	*process
	eventsDisabled bool // task_send_sent_event is off
}

// request is something that clients do, and how often compared with the other requests.
type request struct {
	weight float64
	send   func(c *Cluster, from client)
}

// requests returns all that the shop's clients do.
func requests() []request {
	single := func(weight float64, name string) request {
		return request{weight, func(c *Cluster, from client) { c.send(from, call{kind: c.kinds[name]}) }}
	}
	return []request{
		single(16, "fraud.score"),
		single(14, "mail.send_receipt"),
		single(14, "search.index_product"),
		single(8, "webhooks.deliver"),
		single(8, "billing.charge_card"),
		single(1, "billing.refund"),
		single(0.8, "search.reindex"),
		single(0.6, "exports.orders_csv"),
		single(0.3, "reports.nightly"),
		single(0.2, "legacy.sync_erp"),
		{4, (*Cluster).remind},
		{6, func(c *Cluster, from client) {
			c.chain(from, call{}, "inventory.reserve", "billing.charge_card", "mail.send_receipt")
		}},
		{3, func(c *Cluster, from client) {
			c.chord(from, call{}, c.rng.upTo(3, 6), "images.resize", "catalog.publish")
		}},
		{2, (*Cluster).importOrders},
	}
}

// remind sends a task for later. Some expire before their time, by a mistake in the shop.
func (c *Cluster) remind(from client) {
	cl := call{kind: c.kinds["mail.remind_cart"], countdown: c.rng.between(5*time.Second, 90*time.Second)}
	switch roll := c.rng.Float64(); {
	case roll < 0.06:
		cl.expires = cl.countdown - c.rng.between(time.Second, 4*time.Second)
	case roll < 0.4:
		cl.expires = cl.countdown + 10*time.Minute
	}
	c.send(from, cl)
}

// importOrders sends a task that itself starts a group and a chord.
func (c *Cluster) importOrders(from client) {
	c.send(from, call{kind: c.kinds["orders.import"], then: func(p *process, m *message) {
		within := call{root: m.task.root, parent: m.task.id}
		for range c.rng.upTo(1, 2) {
			within.kind = c.kinds["webhooks.deliver"]
			c.send(client{process: p}, within)
		}
		c.chord(client{process: p}, within, c.rng.upTo(2, 4), "inventory.reserve", "catalog.publish")
	}})
}

// chain sends the first of several tasks, each of which sends the next when it succeeds.
func (c *Cluster) chain(from client, within call, names ...string) {
	within.kind = c.kinds[names[0]]
	within.then = nil
	if len(names) > 1 {
		within.then = func(p *process, m *message) {
			c.chain(client{process: p}, call{root: m.task.root, parent: m.task.id}, names[1:]...)
		}
	}
	c.send(from, within)
}

// chord sends a group of n tasks; the last of them to succeed sends the body. As in Celery, that one
// becomes its parent.
func (c *Cluster) chord(from client, within call, n int, header, body string) {
	left := n
	within.kind = c.kinds[header]
	within.then = func(p *process, m *message) {
		if left--; left == 0 {
			c.send(client{process: p}, call{kind: c.kinds[body], root: m.task.root, parent: m.task.id})
		}
	}
	for range n {
		c.send(from, within)
	}
}

// request does something at random.
func (c *Cluster) request(from client) {
	total := 0.0
	for _, r := range c.requests {
		total += r.weight
	}
	roll := c.rng.Float64() * total
	for _, r := range c.requests {
		if roll -= r.weight; roll < 0 {
			r.send(c, from)
			return
		}
	}
}

// wave is the traffic at a time, as a factor on the average: it breathes slowly, and a little faster.
func (c *Cluster) wave() float64 {
	t := float64(c.now-c.opts.Start.UnixNano()) / float64(time.Second)
	return 1 + 0.4*math.Sin(2*math.Pi*t/240) + 0.15*math.Sin(2*math.Pi*t/37)
}

// arrive is one request by a client, and plans the next.
func (c *Cluster) arrive() {
	const peak = 1.55
	if c.ended() {
		return
	}
	if c.rng.chance(c.wave() / peak) {
		c.request(pick(c.rng, c.clients))
	}
	perSecond := max(c.opts.Rate/10, c.opts.Rate-c.periodic) / tasksPerRequest * peak
	c.after(c.rng.exp(time.Duration(float64(time.Second)/perSecond)), c.arrive)
}

// burst is a script: a new process that sends many tasks within a second.
func (c *Cluster) burst() bool {
	from := client{process: c.spawn(pick(c.rng, c.hosts))}
	n := int(max(24, c.opts.Rate*2))
	for range n {
		c.after(c.rng.between(0, time.Second), func() { c.request(from) })
	}
	return true
}
