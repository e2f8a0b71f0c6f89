package workflow

import (
	"cmp"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/state"
)

// Offsets returns how far the clocks of hosts are ahead of the local one, µs, by those of their workers. Hosts without a worker
// whose clock is known are not in it.
func Offsets(workers []state.Worker) map[string]int64 {
	offsets := make(map[string]int64)
	slices.SortFunc(workers, func(a, b state.Worker) int { return cmp.Compare(a.Name, b.Name) })
	for _, w := range workers {
		if _, known := offsets[Host(w.Name)]; !known && w.ClockOffsetMicros != nil {
			offsets[Host(w.Name)] = *w.ClockOffsetMicros
		}
	}
	return offsets
}

// Host is the host of a node name such as celery@host.
func Host(node string) string {
	_, host, found := strings.Cut(node, "@")
	if !found {
		return node
	}
	return host
}

// ElapsedFunc bounds the time from one event to another that it came before, as state.View.Elapsed does.
type ElapsedFunc func(from, to state.Moment) (state.Elapsed, bool)

// Length is a length of time, µs.
type Length struct {
	state.Elapsed       // bounds of it
	Likely        int64 // within them, by corrected times
	// Uncertain says that by corrected times the end came before the beginning.
	Uncertain bool
}

// Exact reports whether it is known to the µs.
func (l Length) Exact() bool { return l.Low == l.High }

func (l Length) plus(m Length) Length {
	sum := Length{state.Elapsed{Low: l.Low + m.Low, High: state.OpenHigh}, l.Likely + m.Likely, l.Uncertain || m.Uncertain}
	if l.High != state.OpenHigh && m.High != state.OpenHigh {
		sum.High = l.High + m.High
	}
	return sum
}

func exactly(d int64) Length { return Length{Elapsed: state.Elapsed{Low: d, High: d}, Likely: d} }

// moment is an event with its corrected time.
type moment struct {
	by state.Moment // with the time as it was reported
	at int64
}

// moment is when a worker did something at a corrected time.
func (e *Execution) moment(at int64) moment {
	return moment{state.Moment{Hostname: e.Worker, PID: e.PID, Micros: at + e.Ahead}, at}
}

// queued is when an attempt was queued, by whom its message was sent.
func (t *Task) queued(n int) moment {
	if n > 0 {
		return t.Executions[n-1].moment(t.Executions[n].QueuedAt)
	}
	at := t.Executions[0].QueuedAt
	return moment{state.Moment{Hostname: t.Client, Client: true, Micros: at + t.SentAhead}, at}
}

// between bounds the time between two events. Without elapsed, clocks are trusted.
func between(from, to moment, elapsed ElapsedFunc) Length {
	l := exactly(max(to.at-from.at, 0))
	l.Uncertain = to.at < from.at
	if elapsed == nil {
		return l
	}
	e, ok := elapsed(from.by, to.by)
	if !ok {
		e = state.Elapsed{High: state.OpenHigh}
	}
	l.Elapsed, l.Likely = e, min(max(l.Likely, e.Low), e.High)
	return l
}

// Waited is how long attempt n of a task waited from when it was queued until its worker did something at a corrected time.
// It is false if either is unknown.
func (w *Workflow) Waited(task, n int, until int64, elapsed ElapsedFunc) (Length, bool) {
	t := &w.Tasks[task]
	e := &t.Executions[n]
	if e.QueuedAt == 0 || until == 0 {
		return Length{}, false
	}
	l := between(t.queued(n), e.moment(until), elapsed)
	if n > 0 || l.High != state.OpenHigh || t.Parent < 0 || elapsed == nil {
		return l, true
	}
	// Clocks of clients have no upper bound. But its parent had started before it sent the task.
	if p := w.Tasks[t.Parent].Executions; len(p) > 0 && p[0].StartedAt != 0 {
		if most, ok := elapsed(p[0].moment(p[0].StartedAt).by, e.moment(until).by); ok && most.High >= l.Low {
			l.High = most.High
			l.Likely = min(l.Likely, l.High)
		}
	}
	return l, true
}
