package metrics_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/monitor/metrics"
	"github.com/umbelhq/umbel/state"
)

// noon is 2026-11-21 12:00 UTC in µs.
const noon = int64(1_795_262_400_000_000)

// cluster folds events and counts them.
type cluster struct {
	*state.Cluster
	recorder *metrics.Recorder
	clock    int64
}

func newCluster() *cluster {
	return &cluster{Cluster: state.New(state.Options{}), recorder: metrics.New(metrics.Options{})}
}

func (c *cluster) fold(e state.Event) {
	ch := c.Apply(&e)
	c.recorder.Add(&e, &ch)
}

// event is an event of a task at a second after noon.
func (c *cluster) event(kind state.Kind, id, name, worker string, second float64, change ...func(e *state.Event)) state.Event {
	c.clock++
	micros := noon + int64(second*1e6)
	e := state.Event{
		Kind: kind, ID: id, Name: name, Hostname: worker, PID: 7, Clock: c.clock, Micros: micros, ReceivedMicros: micros,
		Present: state.FieldClock | state.FieldPID | state.FieldTimestamp,
	}
	if kind == state.TaskReceived || kind == state.TaskSent {
		e.Present |= state.FieldName
	}
	for _, f := range change {
		f(&e)
	}
	return e
}

func ran(seconds float64) func(e *state.Event) {
	return func(e *state.Event) { e.Runtime, e.Present = seconds, e.Present|state.FieldRuntime }
}

func id(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }

// counts are the events that a snapshot has, by task, worker and type.
func counts(s *metrics.Snapshot) map[string]uint64 {
	all := make(map[string]uint64)
	for _, v := range s.Series {
		for _, c := range v.Events {
			all[v.Task+" "+v.Worker+" "+c.Type] += c.Events
		}
	}
	return all
}

func TestEventsCountOnce(t *testing.T) {
	t.Parallel()
	c := newCluster()
	events := []state.Event{
		c.event(state.TaskSent, id(1), "mail", "gen12@web", 0),
		c.event(state.TaskReceived, id(1), "mail", "celery@a", 1),
		c.event(state.TaskStarted, id(1), "", "celery@a", 3),
		c.event(state.TaskCustom, id(1), "", "celery@a", 3.5, func(e *state.Event) { e.Subject = "progress" }),
		c.event(state.TaskCustom, id(1), "", "gen99@a", 3.6, func(e *state.Event) { e.Subject = "progress" }),
		c.event(state.TaskSucceeded, id(1), "", "celery@a", 5, ran(2)),
		c.event(state.WorkerHeartbeat, "", "", "celery@a", 6),
	}
	for _, e := range events {
		c.fold(e)
	}
	for _, e := range events { // delivered again
		c.fold(e)
	}
	late := c.event(state.TaskReceived, id(2), "mail", "celery@a", 7)
	c.fold(c.event(state.TaskFailed, id(2), "", "celery@a", 9))
	c.fold(late) // after the end of its task
	s := c.recorder.Snapshot()
	want := map[string]uint64{
		"mail gen@clients task-sent": 1, "mail celery@a task-received": 2, "mail celery@a task-started": 1,
		"mail celery@a task-progress": 1, "mail gen@clients task-progress": 1, "mail celery@a task-succeeded": 1,
		" celery@a task-failed": 1, // nothing had named it yet
	}
	if diff := cmp.Diff(want, counts(s)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	s.Sort()
	if got, want := s.Tasks[1].Run.Count(), uint64(1); got != want {
		t.Errorf("run times = %d, want %d", got, want)
	}
	if got, want := s.Tasks[1].Wait.Sum(), 3.0; got != want {
		t.Errorf("waited %v s, want %v since it was sent", got, want)
	}
}

func TestPrefetchTimeIsThatOfTheTaskThatRuns(t *testing.T) {
	t.Parallel()
	c := newCluster()
	prefetch := func() float64 {
		t.Helper()
		for _, v := range c.recorder.Snapshot().Series {
			if v.Started {
				return v.PrefetchSeconds
			}
		}
		return -1
	}
	c.fold(c.event(state.TaskReceived, id(1), "mail", "celery@a", 0))
	c.fold(c.event(state.TaskReceived, id(2), "mail", "celery@a", 0))
	c.fold(c.event(state.TaskStarted, id(1), "", "celery@a", 1))
	c.fold(c.event(state.TaskStarted, id(2), "", "celery@a", 4))
	c.fold(c.event(state.TaskSucceeded, id(1), "", "celery@a", 5, ran(4)))
	if got := prefetch(); got != 4 {
		t.Errorf("prefetch time while the second task runs = %v, want 4", got)
	}
	c.fold(c.event(state.TaskSucceeded, id(2), "", "celery@a", 6, ran(2)))
	if got := prefetch(); got != 0 {
		t.Errorf("prefetch time once it has ended = %v, want 0", got)
	}
	eta := func(e *state.Event) { e.ETA, e.Present = "2026-11-21T12:01:00", e.Present|state.FieldETA }
	c.fold(c.event(state.TaskReceived, id(3), "mail", "celery@a", 7, eta))
	c.fold(c.event(state.TaskStarted, id(3), "", "celery@a", 60))
	if got := prefetch(); got != 0 {
		t.Errorf("prefetch time of a task with an ETA = %v, want 0", got)
	}
}

func TestPrefetchedTasksComeFromTheState(t *testing.T) {
	t.Parallel()
	c := newCluster()
	for n := range 5 {
		c.fold(c.event(state.TaskReceived, id(n), "mail", "celery@a", float64(n)))
	}
	c.fold(c.event(state.TaskStarted, id(0), "", "celery@a", 5))
	c.fold(c.event(state.TaskRevoked, id(1), "", "celery@a", 5)) // Flower counts it for ever
	c.fold(c.event(state.TaskReceived, id(9), "mail", "celery@a", 5, func(e *state.Event) {
		e.ETA, e.Present = "2026-11-21T12:01:00", e.Present|state.FieldETA
	}))
	want := []state.Prefetched{{Worker: "celery@a", Name: "mail", Tasks: 3}}
	if diff := cmp.Diff(want, c.Prefetched()); diff != "" {
		t.Errorf("prefetched (-want +got):\n%s", diff)
	}
	c.Expire(noon + 600e6)
	if diff := cmp.Diff([]state.Prefetched{}, c.Prefetched()); diff != "" {
		t.Errorf("prefetched by a worker that died (-want +got):\n%s", diff)
	}
	if l := c.Liveness(); len(l) != 1 || l[0].Status != state.Offline {
		t.Errorf("liveness = %+v, want one that is offline", l)
	}
}

func TestNamesNeverExplodeTheSeries(t *testing.T) {
	t.Parallel()
	c := newCluster()
	const events = 20_000
	for n := range events {
		name := fmt.Sprintf("task-%d", n%1_500)
		worker := fmt.Sprintf("celery@w%d", n%7_000)
		kind := state.TaskReceived
		if n%3 == 0 {
			kind, worker = state.TaskSent, fmt.Sprintf("gen%d@host", n)
		}
		c.fold(c.event(kind, id(n), name, worker, 0))
		c.fold(c.event(state.TaskCustom, id(n), "", "celery@w0", 1, func(e *state.Event) { e.Subject = fmt.Sprintf("step-%d", n) }))
	}
	s := c.recorder.Snapshot()
	if got, most := len(s.Tasks), metrics.MaxTasks+1; got > most {
		t.Errorf("%d names, want at most %d", got, most)
	}
	if got, most := len(s.Series), metrics.MaxPairs+2*(metrics.MaxTasks+1); got > most {
		t.Errorf("%d series, want at most %d", got, most)
	}
	total, types := uint64(0), map[string]bool{}
	for key, n := range counts(s) {
		total += n
		types[key[strings.LastIndex(key, " "):]] = true
	}
	if total != 2*events {
		t.Errorf("%d events counted, want %d: those beyond the bounds too", total, 2*events)
	}
	if len(types) > 102 {
		t.Errorf("%d types, want at most 102", len(types))
	}
	got := s.Labels("celery@new", "task-1499")
	if diff := cmp.Diff(metrics.Labels{Task: metrics.Other, Worker: metrics.Other}, got); diff != "" {
		t.Errorf("labels of what has none (-want +got):\n%s", diff)
	}
	c.recorder.Forget(func(string) bool { return true })
	for _, v := range c.recorder.Snapshot().Series {
		if v.Worker != metrics.Clients && v.Worker != metrics.Other {
			t.Fatalf("series of a forgotten worker: %+v", v)
		}
	}
	c.fold(c.event(state.TaskReceived, "fresh", "task-1", "celery@new", 2))
	if counts(c.recorder.Snapshot())["task-1 celery@new task-received"] != 1 {
		t.Error("no room for a new worker after others are forgotten")
	}
}

func TestBucketsAscend(t *testing.T) {
	t.Parallel()
	for name, bounds := range map[string][]float64{
		"equal": {1, 1}, "descending": {2, 1}, "zero": {0, 1}, "negative": {-1}, "infinite": {1, math.Inf(1)}, "no number": {math.NaN()}, "many": make([]float64, 51),
	} {
		if metrics.CheckBuckets(bounds) == nil {
			t.Errorf("%s: %v is accepted", name, bounds)
		}
	}
	if err := metrics.CheckBuckets(metrics.DefaultRuntimeBuckets()); err != nil {
		t.Error(err)
	}
}

func TestWorkersNeeded(t *testing.T) {
	t.Parallel()
	c := newCluster()
	sent := func(queue string) func(e *state.Event) {
		return func(e *state.Event) { e.Queue, e.Present = queue, e.Present|state.FieldQueue }
	}
	c.fold(c.event(state.TaskSent, id(1), "mail", "gen1@w", 0, sent("mail")))
	c.fold(c.event(state.TaskReceived, id(1), "mail", "celery@a", 0))
	c.fold(c.event(state.TaskSucceeded, id(1), "", "celery@a", 4, ran(4)))
	c.fold(c.event(state.TaskReceived, id(2), "other", "celery@a", 0))
	c.fold(c.event(state.TaskSucceeded, id(2), "", "celery@a", 2, ran(2)))
	s := c.recorder.Snapshot()
	type answer struct {
		Seconds float64
		OK      bool
	}
	ask := func(queue string, after time.Duration, workers ...string) answer {
		seconds, ok := s.MeanRunTime(queue, workers, time.UnixMicro(noon).Add(after))
		return answer{seconds, ok}
	}
	got := []answer{ask("mail", time.Minute), ask("unrouted", time.Minute, "celery@a"), ask("unrouted", time.Minute), ask("mail", 11*time.Minute)}
	want := []answer{{4, true}, {3, true}, {}, {}}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("mean run times of a queue, by worker, of none, and of long ago (-want +got):\n%s", diff)
	}
	if got, want := metrics.WorkersNeeded(5, 4, 30, time.Minute), 22.0; got != want {
		t.Errorf("workers for 5 a second of 4 s with 30 waiting = %v, want %v", got, want)
	}
}

// BenchmarkAdd compares folding events with folding and counting them, in batches of 24 as workers send them.
func BenchmarkAdd(b *testing.B) {
	for _, workers := range []int{4, 200} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			c := newCluster()
			var events []state.Event
			for n := range 20_000 {
				worker, name, second := fmt.Sprintf("celery@web-%d", n/8*7919%workers), fmt.Sprintf("billing.tasks.charge_card_%d", n%20), float64(n)/2_000
				events = append(events, c.event(state.TaskReceived, id(n), name, worker, second),
					c.event(state.TaskStarted, id(n), "", worker, second+.01), c.event(state.TaskSucceeded, id(n), "", worker, second+.05, ran(.04)))
			}
			for i := range events { // as after some time: every series exists
				ch := c.Apply(&events[i])
				c.recorder.Add(&events[i], &ch)
			}
			var folding, counting time.Duration
			b.ReportAllocs()
			for range b.N {
				c.Cluster = state.New(state.Options{})
				changes := make([]state.Change, 240)
				for batch := range slices.Chunk(events, len(changes)) { // few reads of the clock, which is slow on some machines
					start := time.Now()
					for i := range batch {
						changes[i] = c.Apply(&batch[i])
					}
					folded := time.Now()
					for i := range batch {
						c.recorder.Add(&batch[i], &changes[i])
					}
					folding, counting = folding+folded.Sub(start), counting+time.Since(folded)
				}
			}
			n := float64(b.N * len(events))
			b.ReportMetric(float64(folding.Nanoseconds())/n, "ns/fold")
			b.ReportMetric(float64(counting.Nanoseconds())/n, "ns/count")
		})
	}
}

// Workers beyond the bound share the counts of Other.
func TestEventsOfWorkers(t *testing.T) {
	t.Parallel()
	c := newCluster()
	for i := range metrics.MaxPairs {
		c.fold(c.event(state.WorkerHeartbeat, "", "", fmt.Sprintf("w%d@h", i), 0))
	}
	for _, kind := range []state.Kind{state.WorkerOffline, state.WorkerOnline, state.WorkerHeartbeat, state.WorkerOther} {
		c.fold(c.event(kind, "", "", "w0@h", 1))
		c.fold(c.event(kind, "", "", "late@h", 1))
	}
	got := c.recorder.Snapshot().Workers
	for worker, beats := range map[string]uint64{"w0@h": 2, metrics.Other: 1} {
		want := []metrics.Count{{Type: "worker-online", Events: 1}, {Type: "worker-heartbeat", Events: beats}, {Type: "worker-offline", Events: 1}}
		if diff := cmp.Diff(want, got[worker]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", worker, diff)
		}
	}
	if len(got) != metrics.MaxPairs+1 {
		t.Errorf("%d workers are counted, want %d", len(got), metrics.MaxPairs+1)
	}
}
