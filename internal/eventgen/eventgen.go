// Package eventgen makes random histories of small Celery clusters for tests, as raw event bodies
// with the truth beside them. Each process keeps its own order; clocks start anywhere, wall clocks are skewed.
package eventgen

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// Options say what may happen besides receiving, starting, retrying and ending. The zero value is a calm
// cluster, on whose histories Celery's own fold is right too.
type Options struct {
	Tasks     int  // at most; 0 means 4
	Deaths    bool // workers die and come back with a new pid, or the same; tasks are redelivered
	SamePID   bool // dead workers come back under the pid they had, as in a container
	Custom    bool // custom events from pool children
	Revoked   bool // tasks are revoked before they start, while they run, or while they wait for a retry
	Rejected  bool // tasks are rejected while they run
	Discarded bool // revoked tasks are discarded by workers that never reported receiving them
	Replaced  bool // running tasks replace themselves with others
	Doubled   bool // failures are reported twice, as by Celery 5.7, and terminated tasks as succeeded too, as by gevent
}

// History is what happened, in order of the wall clock of an observer.
type History struct {
	Events []json.RawMessage
	Truth  map[string]Truth // by task id
}

// Truth is how a task really ended.
type Truth struct {
	State   string
	Worker  string
	Retries int
	Result  string
}

type process struct {
	host  string
	pid   int
	clock int
	skew  float64 // seconds that its wall clock is ahead
}

type task struct {
	id, name, parent string
	retries          int
	stage            string // new, sent, received, started, waiting, done
	on               *process
	child            int
	replaced         int // how often it was
}

type world struct {
	o       Options
	rng     *rand.Rand
	now     float64
	workers []*process
	client  *process
	tasks   []*task
	history History
}

// New makes a history from a seed. The same seed and options make the same one.
func New(seed uint64, o Options) History {
	w := &world{o: o, rng: rand.New(rand.NewPCG(seed, 7)), now: 1_790_000_000}
	for i := range 2 + w.rng.IntN(2) {
		w.workers = append(w.workers, &process{
			host: fmt.Sprintf("celery@host-%d", i), pid: 100 + i*100, clock: w.rng.IntN(5000), skew: float64(w.rng.IntN(7)-3) / 10,
		})
	}
	w.client = &process{host: "gen4711@web", pid: 4711, skew: 0.2}
	w.history.Truth = make(map[string]Truth)
	if o.Tasks == 0 {
		o.Tasks = 4
	}
	for i := range 1 + w.rng.IntN(o.Tasks) {
		t := &task{id: w.uuid(), name: fmt.Sprintf("shop.task_%d", i%3), stage: "new"}
		if i > 0 && w.chance(3) {
			t.parent = w.tasks[w.rng.IntN(i)].id
		}
		w.tasks = append(w.tasks, t)
	}
	for steps := 0; steps < 400 && w.step(); steps++ {
	}
	return w.history
}

func (w *world) chance(oneIn int) bool { return w.rng.IntN(oneIn) == 0 }

func (w *world) uuid() string {
	a, b := w.rng.Uint64(), w.rng.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&0xffffffffffff)
}

// step lets one thing happen, and reports whether anything is left to happen.
func (w *world) step() bool {
	var open []*task
	for _, t := range w.tasks {
		if t.stage != "done" {
			open = append(open, t)
		}
	}
	if len(open) == 0 {
		return false
	}
	w.now += 0.2 + w.rng.Float64()*3
	if w.o.Deaths && w.chance(12) {
		w.die(w.workers[w.rng.IntN(len(w.workers))])
		return true
	}
	if w.chance(6) {
		p := w.workers[w.rng.IntN(len(w.workers))]
		w.emit(p, p.pid, "worker-heartbeat", map[string]any{
			"freq": 2.0, "active": w.rng.IntN(4), "processed": w.rng.IntN(90), "loadavg": []float64{0.5, 0.4, 0.3},
			"sw_ident": "py-celery", "sw_ver": "5.6.3", "sw_sys": "Linux",
		})
		return true
	}
	w.advance(open[w.rng.IntN(len(open))])
	return true
}

// die ends a worker's process. What it held is delivered again.
func (w *world) die(p *process) {
	w.now += 4
	if !w.o.SamePID {
		p.pid += 7
	}
	p.clock = 0
	for _, t := range w.tasks {
		if t.on == p && (t.stage == "received" || t.stage == "started") {
			t.stage, t.on = "sent", nil
		}
	}
	w.emit(p, p.pid, "worker-online", map[string]any{"freq": 2.0, "sw_ident": "py-celery", "sw_ver": "5.6.3", "sw_sys": "Linux"})
}

// advance moves a task on by one event.
func (w *world) advance(t *task) {
	switch t.stage {
	case "new", "waiting":
		w.publish(t)
	case "sent":
		w.take(t)
	case "received":
		if w.o.Revoked && w.chance(6) {
			w.end(t, "task-revoked", "REVOKED", map[string]any{"terminated": false, "signum": nil, "expired": false})
			return
		}
		w.on(t, "task-started", nil)
		t.stage = "started"
	case "started":
		w.work(t)
	}
}

func (w *world) publish(t *task) {
	stage := t.stage
	t.stage = "sent"
	if stage == "waiting" || w.chance(2) {
		return // no task-sent for this attempt
	}
	by := w.client
	if t.replaced > 0 { // a child of its worker does
		by = &process{host: fmt.Sprintf("gen%d@host", 900+t.replaced), pid: 900 + t.replaced}
	}
	w.emit(by, by.pid, "task-sent", map[string]any{
		"uuid": t.id, "root_id": w.root(t), "parent_id": t.publisher(), "name": t.name, "args": "(1,)", "kwargs": "{}",
		"retries": t.retries, "eta": nil, "expires": nil, "queue": "celery", "exchange": "", "routing_key": "celery",
	})
}

// publisher is the task that published the message: itself, once it was replaced.
func (t *task) publisher() any {
	if t.replaced > 0 {
		return t.id
	}
	return null(t.parent)
}

func (w *world) take(t *task) {
	t.on = w.workers[w.rng.IntN(len(w.workers))]
	if w.o.Discarded && w.chance(6) {
		w.end(t, "task-revoked", "REVOKED", map[string]any{"terminated": false, "signum": nil, "expired": false})
		return
	}
	w.on(t, "task-received", map[string]any{
		"name": t.name, "args": fmt.Sprintf("(%d,)", t.retries), "kwargs": "{}", "root_id": w.root(t), "parent_id": t.publisher(),
		"retries": t.retries, "eta": nil, "expires": nil,
	})
	t.stage = "received"
	w.truth(t, "RECEIVED", "")
}

func (w *world) work(t *task) {
	if w.o.Replaced && w.chance(8) {
		t.replaced++
		t.name, t.retries, t.stage = fmt.Sprintf("shop.replaced_%d", w.rng.IntN(2)), 0, "waiting"
		return
	}
	switch n := w.rng.IntN(12); {
	case w.o.Custom && n < 3:
		t.child++
		child := &process{host: t.on.host, pid: t.on.pid + 1, clock: t.child, skew: t.on.skew}
		w.emit(child, child.pid, "task-progress", map[string]any{"uuid": t.id, "done": t.child})
	case n < 6:
		w.end(t, "task-succeeded", "SUCCESS", map[string]any{"result": fmt.Sprintf("'%d'", w.rng.IntN(100)), "runtime": 0.25})
	case n < 8:
		w.end(t, "task-failed", "FAILURE", map[string]any{"exception": "ValueError('no')", "traceback": "Traceback…\nValueError: no"})
		if w.o.Doubled && w.chance(2) {
			w.on(t, "task-failed", map[string]any{"exception": "ValueError('no')", "traceback": "Traceback…\nValueError: no"})
		}
	case n == 8 && w.o.Revoked:
		w.end(t, "task-revoked", "REVOKED", map[string]any{"terminated": true, "signum": 15, "expired": false})
		if w.o.Doubled && w.chance(2) {
			w.on(t, "task-succeeded", map[string]any{"result": nil, "runtime": nil})
		}
	case n == 9 && w.o.Rejected:
		w.end(t, "task-rejected", "REJECTED", map[string]any{"requeue": false})
	default:
		w.on(t, "task-retried", map[string]any{"exception": "Retry()", "traceback": "Traceback…"})
		w.truth(t, "RETRY", "")
		t.stage = "waiting"
		t.retries++
	}
}

// end finishes a task.
func (w *world) end(t *task, kind, state string, fields map[string]any) {
	w.on(t, kind, fields)
	result, _ := fields["result"].(string)
	w.truth(t, state, result)
	t.stage = "done"
}

func (w *world) truth(t *task, state, result string) {
	w.history.Truth[t.id] = Truth{State: state, Worker: t.on.host, Retries: t.retries, Result: result}
}

func (w *world) on(t *task, kind string, fields map[string]any) {
	if fields == nil {
		fields = map[string]any{}
	}
	fields["uuid"] = t.id
	w.emit(t.on, t.on.pid, kind, fields)
	if kind == "task-started" {
		w.truth(t, "STARTED", "")
	}
}

func (w *world) emit(p *process, pid int, kind string, fields map[string]any) {
	p.clock += 1 + w.rng.IntN(3)
	w.now += 0.001
	fields["type"], fields["hostname"], fields["pid"], fields["clock"] = kind, p.host, pid, p.clock
	fields["timestamp"], fields["utcoffset"] = w.now+p.skew, 0
	body, err := json.Marshal(fields)
	if err != nil {
		panic(err) // plain values only
	}
	w.history.Events = append(w.history.Events, body)
}

func (w *world) root(t *task) string {
	for t.parent != "" {
		for _, o := range w.tasks {
			if o.id == t.parent {
				t = o
				break
			}
		}
	}
	return t.id
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Shuffle returns the events in another order, about every tenth twice.
func Shuffle(seed uint64, events []json.RawMessage) []json.RawMessage {
	rng := rand.New(rand.NewPCG(seed, 11))
	var out []json.RawMessage
	for _, e := range events {
		out = append(out, e)
		if rng.IntN(10) == 0 {
			out = append(out, e)
		}
	}
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
