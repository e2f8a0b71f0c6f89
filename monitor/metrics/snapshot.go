package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/umbelhq/umbel/internal/prometheus"
	"github.com/umbelhq/umbel/state"
)

// Snapshot is a copy of what a Recorder has counted.
type Snapshot struct {
	Series []Series // by worker and task
	Tasks  []Task   // by name
	// Workers has what workers report of themselves, such as worker-heartbeat, by node name.
	Workers map[string][]Count

	// EventLag is the time from an event to its fold, sampled once per batch of messages; HistoryLag that from its fold to the
	// transaction that holds it; Writes what those transactions took.
	EventLag, HistoryLag, Writes *prometheus.Histogram
	WriteErrors                  uint64

	workers, queues map[string]RunTimes
	pairs           map[Labels]bool // that have series
	tasks           map[string]bool // that have series
}

// Labels tell the series of pairs of task and worker apart.
type Labels struct{ Task, Worker string }

// Labels returns the labels under which a task of a worker counts: those of Other, if there are too many.
func (s *Snapshot) Labels(worker, task string) Labels {
	if !s.tasks[task] && len(s.tasks) >= MaxTasks {
		task = Other
	}
	at := Labels{Task: task, Worker: worker}
	if !s.pairs[at] && len(s.pairs) >= MaxPairs {
		at.Worker = Other
	}
	return at
}

// Series is what was counted by task and worker.
type Series struct {
	Task, Worker    string
	Created         time.Time
	Events          []Count
	Received        bool                  // some of Events report that it was received
	Started         bool                  // a task that was received before has started
	Runtime         *prometheus.Histogram // of those that succeeded, nil if none has
	PrefetchSeconds float64               // from the receipt to the start of the task that started last; 0 once it has ended
}

// Count counts the events of a type, such as task-sent or worker-heartbeat.
type Count struct {
	Type   string
	Events uint64
}

// Task is what was counted by task name. Histograms are nil before the first observation.
type Task struct {
	Name      string
	Wait, Run *prometheus.Histogram
}

// kindTypes are Celery's names of the kinds.
var kindTypes = [...]string{ //nolint:gochecknoglobals // a constant table
	state.TaskSent: "task-sent", state.TaskReceived: "task-received", state.TaskStarted: "task-started",
	state.TaskSucceeded: "task-succeeded", state.TaskFailed: "task-failed", state.TaskRejected: "task-rejected",
	state.TaskRevoked: "task-revoked", state.TaskRetried: "task-retried",
	state.WorkerOnline: "worker-online", state.WorkerHeartbeat: "worker-heartbeat", state.WorkerOffline: "worker-offline",
}

// Snapshot copies what was counted, in any order: Sort puts it in order.
func (r *Recorder) Snapshot() *Snapshot {
	s := &Snapshot{
		Series: make([]Series, 0, r.pairs), Tasks: make([]Task, 0, len(r.tasks)), Workers: make(map[string][]Count, len(r.workers)),
		EventLag: r.eventLag.Clone(), HistoryLag: r.historyLag.Clone(), Writes: r.writes.Clone(), WriteErrors: r.writeErrors,
		workers: make(map[string]RunTimes, len(r.workers)), queues: make(map[string]RunTimes, len(r.queues)),
		pairs: make(map[Labels]bool, r.pairs), tasks: make(map[string]bool, len(r.tasks)),
	}
	for _, w := range r.workers {
		s.workers[w.name] = w.runs
		if counts := countKinds(w.events[:]); counts != nil {
			s.Workers[w.name] = counts
		}
		for _, v := range w.series {
			s.Series = append(s.Series, r.copySeries(w, v))
			s.pairs[Labels{v.name, w.name}] = true
		}
	}
	for _, t := range r.tasks {
		s.tasks[t.name] = true
		c := Task{Name: t.name}
		if t.wait != nil {
			c.Wait = t.wait.Clone()
		}
		if t.run != nil {
			c.Run = t.run.Clone()
		}
		s.Tasks = append(s.Tasks, c)
	}
	for name, t := range r.queues {
		s.queues[name] = *t
	}
	return s
}

func (r *Recorder) copySeries(w *worker, v *series) Series {
	c := Series{
		Task: v.task.name, Worker: w.name, Created: time.UnixMicro(v.created), Events: countKinds(v.events[:]), PrefetchSeconds: v.prefetch,
		Received: v.events[state.TaskReceived] > 0, Started: v.started != 0,
	}
	if v.runtime != nil {
		c.Runtime = v.runtime.Clone()
	}
	for number, n := range v.customs {
		if n > 0 {
			c.Events = append(c.Events, Count{"task-" + r.customTypes[number], n})
		}
	}
	return c
}

// countKinds returns the counts of the kinds that were seen.
func countKinds(events []uint64) (counts []Count) {
	for kind, n := range events {
		if n > 0 {
			counts = append(counts, Count{kindTypes[kind], n})
		}
	}
	return counts
}

// Sort puts the series in the order of their labels.
func (s *Snapshot) Sort() {
	slices.SortFunc(s.Series, func(a, b Series) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Task, b.Task))
	})
	slices.SortFunc(s.Tasks, func(a, b Task) int { return cmp.Compare(a.Name, b.Name) })
}

// MeanRunTime is the mean run time in seconds of the tasks of a queue that succeeded in the last 10 minutes. Where clients report
// no queue, it is that of all tasks of the workers that consume from it. ok is false if there were none.
func (s *Snapshot) MeanRunTime(queue string, workers []string, now time.Time) (seconds float64, ok bool) {
	minute := now.Unix() / 60
	t := s.queues[queue]
	n, sum := t.total(minute)
	if n == 0 {
		for _, name := range workers {
			t := s.workers[name]
			count, seconds := t.total(minute)
			n, sum = n+count, sum+seconds
		}
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}

// WorkersNeeded is how many worker processes a queue needs: enough to keep up with arrivals, and to empty the backlog within
// drain.
//
//	arrivals per second × mean run time + ready × mean run time / drain
func WorkersNeeded(arrivals, meanSeconds float64, ready int64, drain time.Duration) float64 {
	return arrivals*meanSeconds + float64(ready)*meanSeconds/drain.Seconds()
}
