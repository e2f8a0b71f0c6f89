package command_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
)

// waitTimeout is how long a test waits for what should come at once.
const waitTimeout = 3 * time.Minute

// bench is a desk with everything around it, and a broker in memory with workers that answer by rote.
type bench struct {
	*command.Service

	*testcluster.Cluster

	broker *inproc.Broker
	db     *sqlite.DB
}

// by is somebody.
var by = command.Caller{Actor: "ada", RemoteAddr: "192.0.2.1", Endpoint: "a test"}

// newBench starts it all. With a backend, results are read from there.
func newBench(t *testing.T, backend results.Backend, workers ...*worker) *bench {
	t.Helper()
	b := &bench{broker: inproc.New(inproc.Options{}), Cluster: testcluster.New(t, state.Options{})}
	b.db = b.DB
	now := time.Now().UnixMicro()
	for _, w := range workers {
		at := now - w.silent.Microseconds()
		b.apply(state.Event{
			Kind: state.WorkerHeartbeat, Hostname: w.name, PID: 1, Clock: 1, Micros: at, ReceivedMicros: at, Freq: 2,
			Present: state.FieldFreq | state.FieldClock | state.FieldTimestamp | state.FieldActive, Active: w.active,
		})
		if w.silent == 0 {
			t.Cleanup(b.broker.Listen(func(m broker.Publishing) { w.hear(b.broker, m) }))
		}
		for _, q := range w.queues {
			b.broker.Declare(q)
		}
	}
	b.Update(func(c *state.Cluster) { c.Expire(now) })

	client, err := remote.New(remote.Options{Broker: b.broker})
	if err != nil {
		t.Fatal(err)
	}
	b.Service, err = command.New(command.Options{
		Client: client, Outbox: b.db, Tasks: b.Cluster, Forgetter: b, Rules: b.db, Results: backend,
	})
	if err != nil {
		t.Fatal(err)
	}
	var g errgroup.Group
	g.Go(func() error { return b.Run(t.Context()) })
	t.Cleanup(func() {
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "a line", func() bool { return client.Connected() })
	return b
}

// ForgetWorker implements command.Workers.
func (b *bench) ForgetWorker(name string) (forgotten bool) {
	b.Update(func(c *state.Cluster) { forgotten = c.ForgetWorker(name) })
	return forgotten
}

func (b *bench) apply(events ...state.Event) {
	for i := range events {
		b.Apply(&events[i])
	}
}

// task has events tell of a task that has come as far as kind.
func (b *bench) task(id string, kind state.Kind, change func(e *state.Event)) {
	kinds := []state.Kind{state.TaskSent, state.TaskReceived, state.TaskStarted, kind}
	for i, k := range kinds {
		if i > slices.Index(kinds, kind) {
			return
		}
		e := state.Event{
			Kind: k, ID: id, Hostname: "w1", PID: 1, Clock: int64(i + 2), Micros: 1795222153_000000 + int64(i),
			ReceivedMicros: 1795222153_000000 + int64(i), Present: state.FieldClock | state.FieldTimestamp,
		}
		if k == state.TaskSent || k == state.TaskReceived {
			e.Name, e.Args, e.Kwargs, e.RootID = "tasks.add", "(1, 2)", "{}", id
			e.Present |= state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldRootID
			if k == state.TaskSent {
				e.Hostname, e.Queue = "gen1@host", "celery"
				e.Present |= state.FieldQueue
			}
		}
		if change != nil {
			change(&e)
		}
		b.apply(e)
	}
}

// settled returns the commands of an order once nothing more happens to them.
func (b *bench) settled(t *testing.T, r command.Receipt) []history.Command {
	t.Helper()
	var ids []int64
	for _, c := range r.Commands {
		ids = append(ids, c.ID)
	}
	list, err := b.Relay.Wait(t.Context(), ids)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(waitTimeout)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("no %s after %s", what, waitTimeout)
		}
	}
}

// worker answers by rote.
type worker struct {
	name   string
	tasks  []string
	queues []string
	pool   string         // prefork if empty
	size   int            // processes
	scaled bool           // it has an autoscaler
	silent time.Duration  // not heard of for so long, and deaf
	active int64          // tasks, as heartbeats tell
	held   map[string]any // answer to query_task
	deaf   []string       // methods that it does not answer

	running, reserved, scheduled []string // ids of the tasks that it holds

	mu    sync.Mutex
	heard []draft
}

// request is a pidbox request.
type draft struct {
	Method      string
	Arguments   map[string]any
	Destination []string
	Ticket      string
	ReplyTo     broker.ReplyTo `json:"reply_to"`
}

// hear answers a request.
func (w *worker) hear(b *inproc.Broker, m broker.Publishing) {
	var r draft
	if err := json.Unmarshal(m.Body, &r); err != nil || len(r.Destination) > 0 && !slices.Contains(r.Destination, w.name) {
		return
	}
	w.mu.Lock()
	w.heard = append(w.heard, r)
	w.mu.Unlock()
	if r.Method == "shutdown" || slices.Contains(w.deaf, r.Method) {
		return
	}
	body, err := json.Marshal(map[string]any{w.name: w.answer(r)})
	if err != nil {
		panic(err)
	}
	b.Reply(r.ReplyTo, broker.Publishing{
		ContentType: "application/json", ContentEncoding: "utf-8", Body: body,
		Headers: map[string]any{"ticket": r.Ticket, "clock": int64(5)},
	})
}

func (w *worker) answer(r draft) any {
	switch r.Method {
	case "registered":
		return w.tasks
	case "active_queues":
		queues := []any{}
		for _, q := range w.queues {
			queues = append(queues, map[string]any{"name": q, "routing_key": q, "exchange": map[string]any{"name": q, "type": "direct"}})
		}
		return queues
	case "stats":
		pool := w.pool
		if pool == "" {
			pool = "prefork"
		}
		stats := map[string]any{
			"pid": 1, "clock": "5", "uptime": 3, "total": map[string]any{},
			"pool": map[string]any{"implementation": "celery.concurrency." + pool + ":TaskPool", "processes": make([]int, w.size)},
		}
		if w.scaled {
			stats["autoscaler"] = map[string]any{"max": 3, "min": 1, "current": 2, "qty": 0}
		}
		return stats
	case "query_task":
		return w.held
	case "active":
		return requestsOf(w.running)
	case "reserved":
		return requestsOf(w.reserved)
	case "scheduled":
		list := []any{}
		for _, r := range requestsOf(w.scheduled) {
			list = append(list, map[string]any{"eta": "2026-11-21T10:00:00+00:00", "priority": 6, "request": r})
		}
		return list
	case "pool_grow":
		return map[string]any{"error": "TypeError('no')"}
	}
	return map[string]any{"ok": r.Method + " done"}
}

// requestsOf is what a worker tells of tasks.
func requestsOf(ids []string) []any {
	list := []any{}
	for _, id := range ids {
		list = append(list, map[string]any{"id": id, "name": "tasks.add", "args": []any{}, "kwargs": map[string]any{}})
	}
	return list
}

// requests returns what the worker has heard by a method.
func (w *worker) requests(method string) (list []draft) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.heard {
		if r.Method == method {
			list = append(list, r)
		}
	}
	return list
}
