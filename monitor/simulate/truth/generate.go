package truth

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel/state"
)

const (
	start = int64(1_790_000_000_000_000)
	ms    = int64(1_000)
	sec   = 1_000 * ms
	hour  = 3_600 * sec

	length  = 40 * sec // how long clients send tasks
	roots   = 12       // tasks that clients send
	lossOf  = 20       // one event in that many is lost
	maxSize = 60       // tasks in all
)

// Generate returns the history of a seed.
func Generate(seed uint64) *History {
	g := newGenerator(seed)
	return g.play()
}

// GenerateSplit returns a history with gossip, in which workers of different hosts do not hear each other from SplitAt on.
func GenerateSplit(seed uint64) *History {
	g := newGenerator(seed)
	g.gossip, g.split = true, start+length/2
	g.h.SplitAt = g.split
	return g.play()
}

func newGenerator(seed uint64) *generator {
	g := &generator{rng: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), h: &History{Skew: map[string]int64{}}}
	g.setUp()
	return g
}

func (g *generator) play() *History {
	g.h.Gossip = g.gossip
	for g.next() {
	}
	for i := range g.h.Events {
		e := &g.h.Events[i]
		e.Lost = g.rng.IntN(lossOf) == 0
	}
	slices.SortStableFunc(g.h.Events, func(a, b Event) int { return cmp.Compare(a.Reported, b.Reported) })
	g.h.close()
	return g.h
}

// generator plays a history.
type generator struct {
	rng       *rand.Rand
	h         *History
	now       int64
	queue     plans
	plans     int
	workers   []*worker
	gossip    bool
	split     int64 // from when on hosts do not hear each other, 0 if they do
	reusePIDs bool
	tasks     int
	number    int // of executions
}

type host struct {
	name string
	skew int64
	pid  int64
}

// process is a sender of events. Its instants are in one order, unless it has threads.
type process struct {
	host    *host
	name    string
	pid     int64
	clock   int64
	last    int32 // its newest instant, -1 before the first
	arrives int64 // when its newest event does
	threads bool
	silent  bool // reports no task-sent
}

type message struct {
	id, name, root, parent string
	attempt                int64
	instant                int32 // of its publication, or of what had it delivered again
	not                    *worker
}

type worker struct {
	*process
	host     *host
	node     string
	pool     []*process
	idle     []*process
	life     int // in History.Workers
	held     []*execution
	ended    int32 // when its last life had ended
	born     int   // lives begun
	children int64 // forked in all lives
}

type execution struct {
	m      *message
	number int
	began  bool
	told   bool // that it began
	ended  bool
}

// plan is something that happens later.
type plan struct {
	at  int64
	seq int
	do  func()
}

type plans []plan

func (p *plans) Len() int      { return len(*p) }
func (p *plans) Swap(i, j int) { (*p)[i], (*p)[j] = (*p)[j], (*p)[i] }

func (p *plans) Less(i, j int) bool {
	a, b := (*p)[i], (*p)[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (p *plans) Push(x any) { *p = append(*p, x.(plan)) } //nolint:forcetypeassert // only plans are pushed

func (p *plans) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	*p = (*p)[:last]
	return x
}

func (g *generator) after(d int64, do func()) {
	g.plans++
	heap.Push(&g.queue, plan{g.now + max(d, 1), g.plans, do})
}

func (g *generator) next() bool {
	if len(g.queue) == 0 || g.now > start+length+60*sec {
		return false
	}
	p := heap.Pop(&g.queue).(plan) //nolint:forcetypeassert // only plans are pushed
	g.now = p.at
	p.do()
	return true
}

func (g *generator) chance(n int) bool { return g.rng.IntN(n) == 0 }

func (g *generator) between(lo, hi int64) int64 { return lo + g.rng.Int64N(hi-lo+1) }

// delay is mostly below a millisecond, and now and then long.
func (g *generator) delay() int64 {
	if g.chance(12) {
		return g.between(ms, 60*ms)
	}
	return g.between(20, ms)
}

func (g *generator) setUp() {
	g.now = start
	g.gossip, g.reusePIDs = !g.chance(3), g.chance(2)
	for i := range 2 + g.rng.IntN(2) {
		h := &host{name: "h" + strconv.Itoa(i), pid: 100}
		if !g.chance(4) {
			h.skew = g.between(-hour, hour)
		}
		g.h.Skew[h.name] = h.skew
		for k := range 1 + g.rng.IntN(2) {
			w := &worker{host: h, node: fmt.Sprintf("w%d@%s", k, h.name)}
			g.workers = append(g.workers, w)
			g.after(g.between(0, sec), func() { g.boot(w) })
			if g.chance(2) {
				g.after(g.between(5*sec, length), func() { g.end(w) })
			}
		}
		h.pid++
		client := &process{host: h, name: fmt.Sprintf("gen%d@%s", h.pid, h.name), pid: h.pid, last: -1, threads: g.chance(3), silent: g.chance(4)}
		for range roots / 2 {
			g.after(g.between(2*sec, length), func() {
				id := g.newID()
				g.publish(client, 0, &message{id: id, name: g.name(), root: id})
			})
		}
	}
	g.after(g.between(sec, 3*sec), g.ping)
}

func (g *generator) newID() string {
	g.tasks++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", g.tasks)
}

func (g *generator) name() string { return "task" + strconv.Itoa(g.rng.IntN(3)) }

// instant adds one with its causes, of which negative ones are none.
func (g *generator) instant(causes ...int32) int32 {
	causes = slices.DeleteFunc(causes, func(c int32) bool { return c < 0 })
	g.h.causes = append(g.h.causes, causes)
	return int32(len(g.h.causes) - 1)
}

// emit writes an event of p whose moment is given, or is now if that is negative.
func (g *generator) emit(p *process, moment int32, happened int64, e state.Event, causes ...int32) *Event {
	report := g.instant(append(causes, p.last, moment)...)
	p.last = report
	if moment < 0 {
		moment, happened = report, g.now
	}
	p.clock++
	e.Hostname, e.PID, e.Clock = p.name, p.pid, p.clock
	e.Micros = g.now + p.host.skew
	e.Present |= state.FieldClock | state.FieldPID | state.FieldTimestamp
	// Events of one connection arrive in order, but for batches and what the broker delivers again.
	p.arrives = max(p.arrives, g.now+g.between(ms/2, 5*ms))
	e.ReceivedMicros = p.arrives
	if g.chance(8) {
		e.ReceivedMicros += g.between(0, 3*sec)
	}
	g.h.Events = append(g.h.Events, Event{
		Event: e, Host: p.host.name, Happened: happened, Reported: g.now, moment: moment, report: report,
	})
	return &g.h.Events[len(g.h.Events)-1]
}

func taskEvent(kind state.Kind, subject string, m *message) state.Event {
	e := state.Event{Kind: kind, Subject: subject, ID: m.id}
	if kind == state.TaskSent || kind == state.TaskReceived {
		e.Name, e.RootID, e.ParentID, e.Retries = m.name, m.root, m.parent, m.attempt
		e.Present = state.FieldName | state.FieldRootID | state.FieldParentID | state.FieldRetries
		if m.parent == "" {
			e.Null = state.FieldParentID
		}
	}
	return e
}

// publish sends a message from p, which reports it a little later. by is the execution that does, 0 for a client.
func (g *generator) publish(p *process, by int, m *message) {
	before := p.last
	if p.threads {
		before = -1
	}
	m.instant = g.instant(before)
	happened := g.now
	if !p.threads {
		p.last = m.instant
	}
	g.after(g.delay(), func() { g.deliver(m) })
	if p.silent {
		return
	}
	report := func() {
		g.emit(p, m.instant, happened, taskEvent(state.TaskSent, "sent", m)).SentBy = by
	}
	if p.threads {
		g.after(g.delay(), report)
	} else {
		g.now += g.between(10, 300) // nothing else of the process happens meanwhile
		report()
	}
}

// deliver hands a message to a worker, at once or when there is one.
func (g *generator) deliver(m *message) {
	var ready []*worker
	for _, w := range g.workers {
		if w.process != nil && w != m.not && !w.holds(m) {
			ready = append(ready, w)
		}
	}
	if len(ready) == 0 {
		if g.now < start+length+30*sec {
			g.after(sec, func() { g.deliver(m) })
		}
		return
	}
	g.receive(ready[g.rng.IntN(len(ready))], m)
}

// holds reports whether w has the same message already: what it reports then of which execution, nobody could tell.
func (w *worker) holds(m *message) bool {
	return slices.ContainsFunc(w.held, func(x *execution) bool { return x.m.id == m.id && x.m.attempt == m.attempt && !x.ended })
}

func (g *generator) receive(w *worker, m *message) {
	g.number++
	x := &execution{m: m, number: g.number}
	w.held = append(w.held, x)
	e := g.emit(w.process, -1, 0, taskEvent(state.TaskReceived, "received", m), m.instant)
	e.Execution = x.number
	if g.chance(25) { // the broker's patience ends: another worker gets it too
		again := *m
		again.not = w
		g.after(g.between(100*ms, 5*sec), func() { g.deliver(&again) })
	}
	g.after(g.delay(), func() { g.begin(w, x, w.born) })
}

// begin runs x in a child, once one is free.
func (g *generator) begin(w *worker, x *execution, born int) {
	if w.process == nil || w.born != born {
		return
	}
	if len(w.idle) == 0 {
		g.after(50*ms, func() { g.begin(w, x, born) })
		return
	}
	child := w.idle[0]
	w.idle = w.idle[1:]
	x.began = true
	g.h.Workers[w.life].Accepted++
	received := g.momentOf(x)
	w.last = g.instant(w.last) // the main process hands it to the child
	began, at := g.instant(child.last, received, w.last), g.now
	child.last = began
	g.after(g.delay(), func() {
		if w.process != nil && w.born == born {
			e := g.emit(w.process, began, at, taskEvent(state.TaskStarted, "started", x.m))
			e.Execution = x.number
			x.told = true
		}
	})
	g.work(w, x, child, born, g.rng.IntN(3))
}

func (g *generator) momentOf(x *execution) int32 {
	for i := len(g.h.Events) - 1; i >= 0; i-- {
		if e := &g.h.Events[i]; e.Execution == x.number && e.Kind == state.TaskReceived {
			return e.moment
		}
	}
	return -1
}

// work publishes n tasks, then ends x.
func (g *generator) work(w *worker, x *execution, child *process, born, n int) {
	wait := g.delay()
	if g.chance(3) {
		wait = g.between(0, 2*sec)
	}
	g.after(wait, func() {
		if w.process == nil || w.born != born {
			return
		}
		if n > 0 && g.tasks < maxSize {
			g.publish(child, x.number, &message{id: g.newID(), name: g.name(), root: x.m.root, parent: x.m.id})
			g.work(w, x, child, born, n-1)
			return
		}
		kind, subject := state.TaskSucceeded, "succeeded"
		switch {
		case g.chance(6) && x.m.attempt < 3:
			kind, subject = state.TaskRetried, "retried"
			next := *x.m
			next.attempt, next.parent, next.not = x.m.attempt+1, x.m.id, nil
			g.publish(child, x.number, &next)
		case g.chance(15) && x.m.parent != x.m.id: // it replaces itself, and says nothing
			next := *x.m
			next.parent, next.name, next.not = x.m.id, g.name(), nil
			g.publish(child, x.number, &next)
			kind = 0
		case g.chance(8):
			kind, subject = state.TaskFailed, "failed"
		}
		g.after(g.delay(), func() { g.finish(w, x, child, born, child.last, taskEvent(kind, subject, x.m)) })
	})
}

// finish reports the end of x, once its beginning is reported. A zero kind is not reported.
func (g *generator) finish(w *worker, x *execution, child *process, born int, done int32, end state.Event) {
	if w.process == nil || w.born != born {
		return
	}
	if !x.told {
		g.after(ms, func() { g.finish(w, x, child, born, done, end) })
		return
	}
	x.ended = true
	w.idle = append(w.idle, child)
	if end.Kind != 0 {
		g.emit(w.process, -1, 0, end, done).Execution = x.number
	}
}
