package monitor

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
	Forgets bool
	Gaps    int           // times that nobody listened, without the one that is not over
	Away    time.Duration // how long those were, in all
	LastGap time.Time     // when the newest of them began, zero if there was none
	// Unseen is at most how many tasks began meanwhile, by what workers count themselves.
	Unseen int64
	// Dropped is how many messages were dropped since they came faster than they could be folded.
	Dropped uint64
}

// gaps is what Health says of times when nobody listened.
type gaps struct {
	forgets bool
	since   time.Time // when the present one began, zero if somebody listens or nobody ever did
	count   int
	away    time.Duration
	last    time.Time
	session broker.EventStream // the newest one
	dropped uint64             // by those before it
}

func newGaps(b broker.Broker) gaps {
	f, ok := b.(broker.Ephemeral)
	return gaps{forgets: ok && f.Ephemeral()}
}

// begin notes that a session has ended at a time.
func (g *gaps) begin(now time.Time) {
	g.dropped, g.session = g.dropped+dropped(g.session), nil
	if g.forgets {
		g.since = now
	}
}

// end notes that a new one began.
func (g *gaps) end(now time.Time, s broker.EventStream) {
	g.session = s
	if g.since.IsZero() {
		return
	}
	g.count++
	g.away += max(now.Sub(g.since), 0) // less where the wall clock was set between two processes
	g.last, g.since = g.since, time.Time{}
}

func (g *gaps) loss() Loss {
	return Loss{
		Forgets: g.forgets, Gaps: g.count, Away: g.away, LastGap: g.last, Dropped: g.dropped + dropped(g.session),
	}
}

func dropped(s broker.EventStream) uint64 {
	if lossy, ok := s.(broker.DropCounter); ok {
		return lossy.Dropped()
	}
	return 0
}

// reckoning compares what workers say that they have begun before a gap and after it.
type reckoning struct {
	before map[string]*progress // by node name, of workers that have not been heard since
	unseen int64
}

type progress struct {
	pid       int64
	processed int64
	seen      int64 // tasks that began after the gap and before the first heartbeat
}

// begin remembers how far workers are.
func (r *reckoning) begin(workers []state.Worker) {
	r.before = make(map[string]*progress, len(workers))
	for _, w := range workers {
		if w.Processed != nil && w.Status != state.Offline {
			r.before[strings.Clone(w.Name)] = &progress{pid: w.PID, processed: *w.Processed}
		}
	}
}

// add takes in an event. What a worker began in the last heartbeat before the gap was seen, but is counted.
func (r *reckoning) add(e *state.Event) {
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
		r.unseen += max(begun-p.seen, 0)
	}
}
