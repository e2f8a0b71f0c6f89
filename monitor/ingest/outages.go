package ingest

import (
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/state"
)

// Loss is what may have been missed since the last monitor wrote last, or since this one started if there was none.
type Loss struct {
	// Forgets says that the broker keeps no events for those who do not listen. Gaps and what follows, but
	// Dropped, are zero otherwise.
	Transient  bool
	Outages    int           // times that nobody listened, without the one that is not over
	OutageTime time.Duration // how long those were, in all
	LastOutage time.Time     // when the newest of them began, zero if there was none
	// Unseen is at most how many tasks began meanwhile, by what workers count themselves.
	MissedTasks int64
	// Dropped is how many messages were dropped since they came faster than they could be folded.
	Dropped uint64
}

// gaps is what Health says of times when nobody listened.
type outages struct {
	transient bool
	since     time.Time // when the present one began, zero if somebody listens or nobody ever did
	count     int
	total     time.Duration
	last      time.Time
	stream    broker.EventStream // the newest one
	dropped   uint64             // by those before it
}

func newOutages(b broker.Broker) outages {
	f, ok := b.(broker.Ephemeral)
	return outages{transient: ok && f.Ephemeral()}
}

// begin notes that a session has ended at a time.
func (g *outages) begin(now time.Time) {
	g.dropped, g.stream = g.dropped+dropped(g.stream), nil
	if g.transient {
		g.since = now
	}
}

// end notes that a new one began.
func (g *outages) end(now time.Time, s broker.EventStream) {
	g.stream = s
	if g.since.IsZero() {
		return
	}
	g.count++
	g.total += max(now.Sub(g.since), 0) // less where the wall clock was set between two processes
	g.last, g.since = g.since, time.Time{}
}

func (g *outages) loss() Loss {
	return Loss{
		Transient: g.transient, Outages: g.count, OutageTime: g.total, LastOutage: g.last, Dropped: g.dropped + dropped(g.stream),
	}
}

func dropped(s broker.EventStream) uint64 {
	if lossy, ok := s.(broker.DropCounter); ok {
		return lossy.Dropped()
	}
	return 0
}

// reckoning compares what workers say that they have begun before a gap and after it.
type missedEstimate struct {
	before map[string]*workerProgress // by node name, of workers that have not been heard since
	tasks  int64
}

type workerProgress struct {
	pid       int64
	processed int64
	seen      int64 // tasks that began after the gap and before the first heartbeat
}

// begin remembers how far workers are.
func (r *missedEstimate) begin(workers []state.Worker) {
	r.before = make(map[string]*workerProgress, len(workers))
	for _, w := range workers {
		if w.Processed != nil && w.Status != state.Offline {
			r.before[strings.Clone(w.Name)] = &workerProgress{pid: w.PID, processed: *w.Processed}
		}
	}
}

// add takes in an event. What a worker began in the last heartbeat before the gap was seen, but is counted.
func (r *missedEstimate) add(e *state.Event) {
	if len(r.before) == 0 {
		return
	}
	p, ok := r.before[e.Hostname]
	if !ok {
		return
	}
	switch {
	case e.Kind == state.TaskStarted:
		p.seen++
	case e.Kind == state.WorkerHeartbeat && e.Present&state.FieldProcessed != 0:
		delete(r.before, e.Hostname)
		begun := e.Processed - p.processed
		if e.PID != p.pid { // a new process counts from 0
			begun = e.Processed
		}
		r.tasks += max(begun-p.seen, 0)
	}
}
