package ingest

import (
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/state"
)

// Loss is what may have been missed since the last process wrote last, or since this one started if there was none.
type Loss struct {
	// Ephemeral reports that the broker keeps no events while nobody is connected. Otherwise all but Dropped is zero.
	Ephemeral  bool
	Outages    int           // without the present one
	OutageTime time.Duration // of all of them
	LastOutage time.Time     // when the newest began, zero if there was none
	// MissedTasks is an upper bound of the tasks that began during outages, by the workers' own counts.
	MissedTasks int64
	// Dropped counts messages that arrived faster than they were folded.
	Dropped uint64
}

// outages counts the times without a connection to a broker that keeps no events.
type outages struct {
	ephemeral bool
	since     time.Time // of the present one, zero if connected, or never connected
	count     int
	total     time.Duration
	last      time.Time
	stream    broker.EventStream // the newest
	dropped   uint64             // by those before it
}

func newOutages(b broker.Broker) outages {
	f, ok := b.(broker.Ephemeral)
	return outages{ephemeral: ok && f.Ephemeral()}
}

// begin notes that a stream has ended.
func (o *outages) begin(now time.Time) {
	o.dropped, o.stream = o.dropped+dropped(o.stream), nil
	if o.ephemeral {
		o.since = now
	}
}

// end notes that a new stream has begun.
func (o *outages) end(now time.Time, s broker.EventStream) {
	o.stream = s
	if o.since.IsZero() {
		return
	}
	o.count++
	o.total += max(now.Sub(o.since), 0) // negative if the wall clock was set between two processes
	o.last, o.since = o.since, time.Time{}
}

func (o *outages) loss() Loss {
	return Loss{
		Ephemeral: o.ephemeral, Outages: o.count, OutageTime: o.total, LastOutage: o.last, Dropped: o.dropped + dropped(o.stream),
	}
}

func dropped(s broker.EventStream) uint64 {
	if lossy, ok := s.(broker.DropCounter); ok {
		return lossy.Dropped()
	}
	return 0
}

// missedEstimate compares how many tasks workers had begun before an outage and after it.
type missedEstimate struct {
	before map[string]*workerProgress // by node name, of workers that have sent no heartbeat since
	tasks  int64
}

type workerProgress struct {
	pid       int64
	processed int64
	seen      int64 // tasks begun between the outage and the first heartbeat
}

// begin records the counts of workers that are not offline.
func (m *missedEstimate) begin(workers []state.Worker) {
	m.before = make(map[string]*workerProgress, len(workers))
	for _, w := range workers {
		if w.Processed != nil && w.Status != state.Offline {
			m.before[strings.Clone(w.Name)] = &workerProgress{pid: w.PID, processed: *w.Processed}
		}
	}
}

// add counts an event. Tasks begun between the last heartbeat and the outage were seen, but count as missed too.
func (m *missedEstimate) add(e *state.Event) {
	if len(m.before) == 0 {
		return
	}
	p, ok := m.before[e.Hostname]
	if !ok {
		return
	}
	switch {
	case e.Kind == state.TaskStarted:
		p.seen++
	case e.Kind == state.WorkerHeartbeat && e.Present&state.FieldProcessed != 0:
		delete(m.before, e.Hostname)
		begun := e.Processed - p.processed
		if e.PID != p.pid { // a new process counts from 0
			begun = e.Processed
		}
		m.tasks += max(begun-p.seen, 0)
	}
}
