// Package metrics counts what events report, each event once, for Prometheus: by task and worker as Flower does, and run and
// wait times by task. It bounds the series, whatever the names in events. It serves nothing.
package metrics

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/umbelhq/umbel/internal/prometheus"
	"github.com/umbelhq/umbel/state"
)

const (
	// Other is the label of everything beyond the bounds.
	Other = "(other)"
	// Clients is the label worker of the events of clients, whose node names (gen123@host) change with each of their processes.
	Clients = "gen@clients"

	// MaxTasks is how many task names have series of their own.
	MaxTasks = 1_000
	// MaxPairs is how many pairs of task and worker have series of their own.
	MaxPairs       = 5_000
	maxCustomTypes = 100 // types of custom events
	maxQueues      = 500 // queues whose run times are kept
	maxLag         = 24 * time.Hour
)

// Options of a Recorder.
type Options struct {
	// RuntimeBuckets are the upper bounds of the classic buckets of run times by task and worker, in seconds, without +Inf. Empty
	// means DefaultRuntimeBuckets.
	RuntimeBuckets []float64
}

// DefaultRuntimeBuckets are those of Flower, in seconds.
func DefaultRuntimeBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
}

// maxBuckets is how many classic buckets a histogram has at most.
const maxBuckets = 50

// CheckBuckets returns an error in words unless bounds are positive, finite, ascending, and at most 50.
func CheckBuckets(bounds []float64) error {
	last := 0.0
	for _, b := range bounds {
		if !(b > last) || math.IsInf(b, 0) {
			return fmt.Errorf("bounds of buckets are positive and ascend: %v is not more than %v", b, last)
		}
		last = b
	}
	if len(bounds) > maxBuckets {
		return fmt.Errorf("%d buckets are more than %d", len(bounds), maxBuckets)
	}
	return nil
}

// durationBuckets are the classic buckets of other durations, in seconds.
func durationBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600}
}

// Recorder counts events. It is not safe for concurrent use.
type Recorder struct {
	buckets, durations []float64
	seed               maphash.Seed
	workers            map[string]*worker
	recent             [256]pair // by hash, to find most series without two searches
	pairs              int
	tasks              map[string]*task
	queues             map[string]*RunTimes
	customTypes        []string // of custom events, beginning with Other

	eventLag, historyLag, writes *prometheus.Histogram
	writeErrors                  uint64
}

// worker is what is counted of the events of a node name.
type worker struct {
	name   string
	series map[string]*series // by task name
	runs   RunTimes
	events [state.WorkerOffline + 1]uint64 // about itself
}

// series is what is counted by task and worker.
type series struct {
	task     *task
	name     string // that the task was asked for, to find it again
	created  int64  // µs
	events   [state.TaskCustom]uint64
	customs  []uint64 // by number of the type
	runtime  *prometheus.Histogram
	prefetch float64
	started  uint64 // hash of the id of the task that started last
}

// task is what is counted by task name.
type task struct {
	name      string
	wait, run *prometheus.Histogram // nil before the first
}

// New returns an empty Recorder.
func New(o Options) *Recorder {
	r := &Recorder{
		buckets: o.RuntimeBuckets, durations: durationBuckets(), seed: maphash.MakeSeed(),
		workers: make(map[string]*worker), tasks: make(map[string]*task), queues: make(map[string]*RunTimes),
		customTypes: []string{Other},
	}
	if len(r.buckets) == 0 {
		r.buckets = DefaultRuntimeBuckets()
	}
	r.eventLag = prometheus.NewHistogram(r.durations, true)
	r.historyLag = prometheus.NewHistogram(r.durations, true)
	r.writes = prometheus.NewHistogram(r.durations, true)
	return r
}

// Add counts an event that was folded with this effect: that of a task not if it was known already.
func (r *Recorder) Add(e *state.Event, ch *state.Change) {
	if e.Kind >= state.WorkerOnline && e.Kind <= state.WorkerOffline {
		r.addWorker(e)
		return
	}
	if !ch.New || !e.Kind.Task() {
		return
	}
	name := e.Hostname
	if e.Kind == state.TaskSent || client(name) {
		name = Clients
	}
	w, s := r.seriesOf(name, ch.Name, e.ReceivedMicros)
	switch e.Kind {
	case state.TaskCustom:
		r.addCustom(s, e.Subject)
		return
	case state.TaskStarted:
		r.addStart(s, e, ch)
	case state.TaskSucceeded, state.TaskFailed:
		r.addEnd(w, s, e, ch)
	default:
	}
	s.events[e.Kind]++
}

// addWorker counts an event of a worker about itself: for Other, if there are too many workers.
func (r *Recorder) addWorker(e *state.Event) {
	name := e.Hostname
	if r.workers[name] == nil && len(r.workers) >= MaxPairs {
		name = Other
	}
	r.workerOf(name).events[e.Kind]++
}

// client reports whether a node name is that of a client: gen, the process id and the host.
func client(name string) bool {
	rest, ok := strings.CutPrefix(name, "gen")
	if !ok {
		return false
	}
	pid, _, ok := strings.Cut(rest, "@")
	return ok && pid != "" && strings.Trim(pid, "0123456789") == ""
}

// pair is a worker and a series of it.
type pair struct {
	worker *worker
	series *series
}

// seriesOf returns the series of a worker and a task.
func (r *Recorder) seriesOf(name, task string, micros int64) (*worker, *series) {
	p := &r.recent[byte((ending(name)*0x9e3779b97f4a7c15^ending(task))*0x9e3779b97f4a7c15>>56)]
	if p.series != nil && p.series.name == task && p.worker.name == name {
		return p.worker, p.series
	}
	if w := r.workers[name]; w != nil {
		if s := w.series[task]; s != nil {
			*p = pair{w, s}
			return w, s
		}
	}
	return r.newSeries(name, task, micros)
}

// ending returns the last 8 bytes of a name, where most differ.
func ending(name string) uint64 {
	if len(name) < 8 {
		return uint64(len(name))
	}
	return binary.LittleEndian.Uint64([]byte(name[len(name)-8:]))
}

// newSeries returns the series of a pair that has none: of Other, if there are too many.
func (r *Recorder) newSeries(name, taskName string, micros int64) (*worker, *series) {
	t := r.taskOf(taskName)
	taskName = t.name
	if r.pairs >= MaxPairs && name != Clients {
		name = Other
	}
	w := r.workerOf(name)
	s := w.series[taskName]
	if s == nil {
		s = &series{task: t, name: t.name, created: micros}
		w.series[s.name] = s
		r.pairs++
	}
	return w, s
}

// workerOf returns the worker of a name.
func (r *Recorder) workerOf(name string) *worker {
	w := r.workers[name]
	if w == nil {
		w = &worker{name: strings.Clone(name), series: make(map[string]*series)}
		r.workers[w.name] = w
	}
	return w
}

// taskOf returns the task of a name: Other, if there are too many.
func (r *Recorder) taskOf(name string) *task {
	if t := r.tasks[name]; t != nil {
		return t
	}
	if len(r.tasks) >= MaxTasks {
		name = Other
		if t := r.tasks[name]; t != nil {
			return t
		}
	}
	t := &task{name: strings.Clone(name)}
	r.tasks[t.name] = t
	return t
}

func (r *Recorder) addCustom(s *series, subject string) {
	number := slices.Index(r.customTypes, subject)
	if number < 0 {
		if number = 0; len(r.customTypes) < maxCustomTypes {
			number = len(r.customTypes)
			r.customTypes = append(r.customTypes, strings.Clone(subject))
		}
	}
	if number >= len(s.customs) {
		s.customs = append(s.customs, make([]uint64, number+1-len(s.customs))...)
	}
	s.customs[number]++
}

func (r *Recorder) addStart(s *series, e *state.Event, ch *state.Change) {
	if ch.PrefetchMicros > 0 {
		s.prefetch, s.started = float64(ch.PrefetchMicros)/1e6, maphash.String(r.seed, e.ID)
	}
	if ch.WaitMicros > 0 && ch.First {
		if s.task.wait == nil {
			s.task.wait = prometheus.NewHistogram(r.durations, true)
		}
		observe(s.task.wait, float64(ch.WaitMicros)/1e6, e)
	}
}

func (r *Recorder) addEnd(w *worker, s *series, e *state.Event, ch *state.Change) {
	if s.prefetch != 0 && s.started == maphash.String(r.seed, e.ID) {
		s.prefetch = 0
	}
	if e.Kind != state.TaskSucceeded || !e.Has(state.FieldRuntime) || e.Runtime < 0 || math.IsInf(e.Runtime, 0) || math.IsNaN(e.Runtime) || !ch.First {
		return
	}
	if s.runtime == nil {
		s.runtime = prometheus.NewHistogram(r.buckets, false)
	}
	s.runtime.Observe(e.Runtime)
	if s.task.run == nil {
		s.task.run = prometheus.NewHistogram(r.durations, true)
	}
	observe(s.task.run, e.Runtime, e)
	minute := e.ReceivedMicros / int64(time.Minute/time.Microsecond)
	w.runs.add(minute, e.Runtime)
	if ch.Queue != "" {
		r.queueOf(ch.Queue).add(minute, e.Runtime)
	}
}

// observe counts a duration. The example is the task, if its id is a UUID: others may say something of what it does.
func observe(h *prometheus.Histogram, seconds float64, e *state.Event) {
	bucket := h.Observe(seconds)
	if h.ExemplarDue(bucket, e.ReceivedMicros) && len(e.ID) == 36 && uuid.Validate(e.ID) == nil {
		h.SetExemplar(bucket, prometheus.Exemplar{Name: "task_id", Text: strings.Clone(e.ID), Value: seconds, AtMicros: e.ReceivedMicros})
	}
}

// queueOf returns the run times of a queue, those of Other if there are too many.
func (r *Recorder) queueOf(name string) *RunTimes {
	if t := r.queues[name]; t != nil {
		return t
	}
	if len(r.queues) >= maxQueues {
		if t := r.queues[Other]; t != nil {
			return t
		}
		name = Other
	}
	t := new(RunTimes)
	r.queues[strings.Clone(name)] = t
	return t
}

// ObserveFold counts how long after it happened an event was folded.
func (r *Recorder) ObserveFold(lag time.Duration) {
	r.eventLag.Observe(min(lag, maxLag).Seconds())
}

// ObserveWrite counts a transaction of the history: how long it took, and how long after its fold the oldest event in it was
// kept; 0 if it has none.
func (r *Recorder) ObserveWrite(took, lag time.Duration) {
	r.writes.Observe(took.Seconds())
	if lag > 0 {
		r.historyLag.Observe(lag.Seconds())
	}
}

// WriteFailed counts a transaction of the history that failed.
func (r *Recorder) WriteFailed() { r.writeErrors++ }

// Forget drops the series of the workers for which gone returns true.
func (r *Recorder) Forget(gone func(worker string) bool) {
	for name, w := range r.workers {
		if name == Clients || name == Other || !gone(name) {
			continue
		}
		delete(r.workers, name)
		r.pairs -= len(w.series)
	}
	clear(r.recent[:])
}
