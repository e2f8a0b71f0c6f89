package web_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// workers are workers that reply to remote control, with a command service.
type workers struct {
	locks    *locks.Memory // those of running tasks
	broker   *inproc.Broker
	store    *sqlite.DB
	commands *command.Service

	mu       sync.Mutex
	answers  map[string]map[string]any // by worker and method
	received []string                  // worker method arguments
}

// newCrew has the workers of a backend answer.
func newWorkers(t *testing.T, b web.Backend, readOnly bool) *workers {
	t.Helper()
	memory, watcher := watchLocks(t, b)
	c := newWorkersWith(t, b, watcher, readOnly)
	c.locks = memory
	return c
}

// newWorkersWith has locks of its own.
func newWorkersWith(t *testing.T, b web.Backend, watcher *locks.Watcher, readOnly bool) *workers {
	t.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	c := &workers{broker: inproc.New(inproc.Options{}), store: db, answers: map[string]map[string]any{
		"celery@a": answers("celery", "mail"), "celery@b/1%20ü": answers("celery"),
	}}
	c.commands, err = command.New(command.Options{Client: controlClient(t, c.broker), Outbox: db, Rules: db, Tasks: b, Locks: watcher, Forgetter: forgetting{b}, Reporter: forgetting{b}, ReadOnly: readOnly})
	if err != nil {
		t.Fatal(err)
	}
	detach := c.broker.Listen(c.receive)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.commands.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		detach()
		if err := db.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return c
}

// forgetting forgets workers as a monitor does.
type forgetting struct{ web.Backend }

func (f forgetting) ForgetWorker(name string) (forgotten bool) {
	f.View(func(c state.View) { forgotten = c.(*state.Cluster).ForgetWorker(name) })
	return forgotten
}

func (f forgetting) ReportWorkers(reports map[string]state.LastReport) {
	f.View(func(c state.View) {
		for name, r := range reports {
			c.(*state.Cluster).ReportWorker(name, r)
		}
	})
}

// receive replies to a request for each of its destinations.
func (c *workers) receive(m broker.Publishing) {
	var r struct {
		Method      string          `json:"method"`
		Arguments   json.RawMessage `json:"arguments"`
		Destination []string        `json:"destination"`
		Ticket      string          `json:"ticket"`
		ReplyTo     broker.ReplyTo  `json:"reply_to"`
	}
	if json.Unmarshal(m.Body, &r) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, answers := range c.answers {
		if len(r.Destination) > 0 && !slices.Contains(r.Destination, name) {
			continue
		}
		c.received = append(c.received, name+" "+r.Method+" "+string(r.Arguments))
		answer, ok := answers[r.Method]
		if !ok {
			continue
		}
		body, err := json.Marshal(map[string]any{name: answer})
		if err != nil {
			panic(err)
		}
		c.broker.Reply(r.ReplyTo, broker.Publishing{
			ContentType: "application/json", ContentEncoding: "utf-8",
			Headers: map[string]any{"ticket": r.Ticket, "clock": int64(7)}, Body: body,
		})
	}
}

// count returns how often a worker received a message.
func (c *workers) count(message string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.received {
		if h == message {
			n++
		}
	}
	return n
}

// answers are those of a worker that consumes from queues.
func answers(queues ...string) map[string]any {
	type object = map[string]any
	request := func(id string, more object) object {
		o := object{"id": id, "name": "billing.charge", "args": "(1,)", "kwargs": "{}", "time_start": nil, "delivery_info": object{"routing_key": "celery"}}
		maps.Copy(o, more)
		return o
	}
	var consumed []object
	for _, q := range queues {
		consumed = append(consumed, object{"name": q, "exchange": object{"name": q, "type": "direct"}, "routing_key": q, "durable": true})
	}
	return object{
		"ping": object{"ok": "pong"}, "pool_grow": object{"ok": "pool will grow"}, "cancel_consumer": object{"ok": "no longer consuming"},
		"rate_limit": object{"error": "unknown task"}, "clock": object{"clock": 2048},
		"stats": object{
			"pid": 40, "uptime": 60, "clock": "2048", "prefetch_count": 8, "total": object{"billing.charge": 12},
			"pool": object{
				"implementation": "celery.concurrency.prefork:TaskPool", "max-concurrency": 2, "processes": []int{71, 72},
				"max-tasks-per-child": "N/A", "timeouts": []int{0, 0},
			},
			"broker": object{"hostname": "rabbit", "alternates": []string{"amqp://guest:geheim@rabbit//"}},
		},
		"active":        []object{request("task-02", object{"time_start": 1_795_262_300.5, "worker_pid": 71})},
		"reserved":      []object{request("held/1", nil)},
		"scheduled":     []object{{"eta": "2026-11-22T09:00:00+00:00", "priority": 6, "request": request("later", nil)}},
		"revoked":       []string{"gone"},
		"registered":    []string{"billing.charge [rate_limit=10/m serializer=json]", "mail.send"},
		"active_queues": consumed,
		"conf":          object{"broker_url": "amqp://guest:********@rabbit//", "worker_concurrency": len(queues)},
		"report":        object{"ok": "software -> celery:5.6.3"},
	}
}

// workersBackend is a backend with a store of its own.
type workersBackend struct {
	*backend
	workers *workers
}

func (b *workersBackend) History() view.History { return b.workers.store }

// changingWorkersBackend is a changingBackend with a store of its own.
type changingWorkersBackend struct {
	*changingBackend
	workers *workers
}

func (b *changingWorkersBackend) History() view.History { return b.workers.store }

// newMannedStage shows a cluster that changes, whose workers answer.
func newWorkersServer(t *testing.T) (*server, *workers) {
	t.Helper()
	s := &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: "/ops", address: "127.0.0.1:0"}
	c := newWorkers(t, s.backend, false)
	app, alerts := watched(t, newShopOutbox()), newAlerts(t, nil)
	s.options = func(o *web.Options) {
		o.Alerts = alerts
		o.Backend, o.Commands, o.AppOutboxes = &changingWorkersBackend{s.backend, c}, c.commands, app
	}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s, c
}

// controlClient returns a client of a broker that is not connected yet.
func controlClient(t testing.TB, b broker.Broker) *remote.Client {
	t.Helper()
	c, err := remote.New(remote.Options{Broker: b})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
