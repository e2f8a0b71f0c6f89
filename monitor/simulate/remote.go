package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// maxCalls bounds the calls from outside that wait for the simulation.
const maxCalls = 1_000

// command is a remote control command, as far as workers look at it.
type command struct {
	Method      string          `json:"method"`
	Arguments   map[string]any  `json:"arguments"`
	Destination []string        `json:"destination"`
	Ticket      string          `json:"ticket"`
	ReplyTo     *broker.ReplyTo `json:"reply_to"`
}

// between returns the result of f, executed between two events of the simulation. It is the zero value if the
// simulation is over or ctx ends first.
func between[T any](ctx context.Context, c *Cluster, f func() T) T {
	done := make(chan T, 1)
	var none T
	if !c.post(func() { done <- f() }) {
		return none
	}
	select {
	case v := <-done:
		return v
	case <-c.closed:
	case <-ctx.Done():
	}
	return none
}

// post has f executed soon. It is false if too much waits already.
func (c *Cluster) post(f func()) bool {
	select {
	case c.calls <- f:
		return true
	default:
		return false
	}
}

// Workers returns the names of the workers, those that are down now too.
func (c *Cluster) Workers() []string {
	var names []string
	for _, w := range c.workers {
		names = append(names, w.name)
	}
	return names
}

// Request delivers a remote control command (pidbox) to a worker. If the worker is up and addressed, it executes
// the command and, if a reply is wanted, passes it to answer soon afterwards, on the goroutine of Run. It may be
// called from any goroutine while Run runs.
func (c *Cluster) Request(worker string, m broker.Publishing, answer func(to broker.ReplyTo, m broker.Publishing)) {
	var r command
	if json.Unmarshal(m.Body, &r) != nil || r.Method == "" {
		return
	}
	if len(r.Destination) > 0 && !slices.Contains(r.Destination, worker) {
		return
	}
	c.post(func() {
		for _, w := range c.workers {
			if w.name == worker {
				w.commanded = max(w.commanded+1, c.now+int64(c.remote.latency())) // commands stay in order
				c.at(w.commanded, func() { w.handle(r, answer) })
			}
		}
	})
}

// handle executes a command once the process has time for it: a solo worker has none while a task runs.
func (w *worker) handle(r command, answer func(broker.ReplyTo, broker.Publishing)) {
	switch {
	case w.main == nil || !w.connected:
		return
	case w.blocked:
		w.deferred = append(w.deferred, func() { w.handle(r, answer) })
		return
	}
	w.main.clock++
	value, silent := w.execute(r.Method, arguments(r.Arguments))
	if r.ReplyTo == nil || silent {
		return
	}
	body, err := json.Marshal(map[string]any{w.name: value})
	if err != nil {
		return // a worker that cannot spell its reply sends none
	}
	answer(*r.ReplyTo, broker.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8", Body: body,
		Headers: map[string]any{"ticket": r.Ticket, "clock": w.main.clock},
	})
}

// execute returns the worker's reply to a command; silent says that there is none.
func (w *worker) execute(method string, args arguments) (value any, silent bool) {
	if inspect, ok := inspections()[method]; ok {
		return inspect(w, args), false
	}
	if method == "shutdown" {
		if w.consuming() {
			w.stop()
		}
		return nil, true
	}
	control, ok := controls()[method]
	if !ok {
		return failed(fmt.Sprintf("KeyError(%q)", method)), false
	}
	return control(w, args), false
}

// done and failed are the two replies of control commands.
func done(text string) any { return map[string]any{"ok": text} }

func failed(text string) any { return map[string]any{"error": text} }

// arguments of a command, as JSON has them.
type arguments map[string]any

func (a arguments) text(name string) string {
	s, _ := a[name].(string)
	return s
}

// texts is a string or a list of strings.
func (a arguments) texts(name string) []string {
	switch v := a[name].(type) {
	case string:
		return []string{v}
	case []any:
		var list []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}

func (a arguments) whole(name string, otherwise int) int {
	if f, ok := a[name].(float64); ok {
		return int(f)
	}
	return otherwise
}

// Deliver puts a task message of protocol 2 into a queue. A task that the shop does not have is one that no worker has
// registered. It is false if there is no such queue. It may be called like Request.
func (c *Cluster) Deliver(ctx context.Context, queue string, m broker.Publishing) bool {
	text := func(name string) string {
		s, _ := m.Headers[name].(string)
		return s
	}
	instant := func(name string) int64 {
		at, err := time.Parse(time.RFC3339Nano, text(name))
		if err != nil {
			return 0
		}
		return at.UnixNano()
	}
	return between(ctx, c, func() bool {
		q := c.queues[queue]
		if q == nil {
			return false
		}
		k := c.kinds[text("task")]
		if k == nil {
			k = &kind{name: text("task"), queue: queue, unknown: true}
		}
		t := &task{id: text("id"), root: text("root_id"), kind: k, args: text("argsrepr"), kwargs: text("kwargsrepr")}
		if c.opts.Truth {
			c.tasks = append(c.tasks, t)
		}
		c.open++
		q.put(&message{task: t, parent: text("parent_id"), eta: instant("eta"), expires: instant("expires")})
		return true
	})
}

// Queues returns the state of the queues as a broker would report it. It may be called like Request, and returns
// nothing once the simulation is over.
func (c *Cluster) Queues(ctx context.Context) []broker.Queue {
	list := between(ctx, c, c.survey)
	slices.SortFunc(list, func(a, b broker.Queue) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (c *Cluster) survey() []broker.Queue {
	held := make(map[string]int64)
	for _, w := range c.workers {
		for _, x := range w.executions {
			if !x.acked {
				held[x.m.task.kind.queue]++
			}
		}
	}
	var list []broker.Queue
	for name, q := range c.queues {
		consumers := int64(0)
		for _, w := range q.consumers {
			if w.consuming() {
				consumers++
			}
		}
		list = append(list, broker.Queue{
			Name: name, Type: "simulated", State: "running", Ready: new(int64(len(q.ready))), Unacked: new(held[name]),
			Consumers: &consumers, Published: new(q.published), Delivered: new(q.delivered), Acked: new(q.delivered - held[name]),
		})
	}
	return list
}
