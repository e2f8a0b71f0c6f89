package simulate_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/state"
)

// observer folds a simulation as it would see it: late, with events missing, and with replies to requests that were
// captured before it takes them in.
type observer struct {
	t          *testing.T
	simulation *simulate.Cluster
	fold       *state.Cluster
	decoder    celery.Decoder
	rng        *rand.Rand
	lag        time.Duration // at most, of deliveries
	loss       int           // one event message in so many is missed, 0 for none
	queue      []simulate.Delivery
	answers    []state.Inspection
	lost       map[state.Reason]map[string]bool
}

// watch runs the simulation and looks at it each second.
func (o *observer) watch(length time.Duration) {
	now := start()
	for end := now.Add(length); now.Before(end); now = now.Add(time.Second) {
		for {
			d, ok := o.simulation.Next()
			if !ok {
				return
			}
			if o.loss == 0 || o.rng.IntN(o.loss) > 0 {
				o.queue = append(o.queue, d)
			}
			if d.At.After(now) {
				break
			}
		}
		visible := now.Add(-time.Duration(o.rng.Int64N(int64(o.lag) + 1)))
		for len(o.queue) > 0 && !o.queue[0].At.After(visible) {
			o.decoder.Decode(o.queue[0].Body, now.UnixMicro(), func(e *state.Event) { o.fold.Apply(e) })
			o.queue = o.queue[1:]
		}
		o.check(now)
		o.reconcile(now)
		o.check(now)
	}
}

func (o *observer) reconcile(now time.Time) {
	for _, a := range o.answers {
		a.RepliedAt = now.UnixMicro()
		o.fold.ApplyInspection(a)
	}
	o.answers = nil
	if now.Second()%7 == 0 {
		for _, h := range o.simulation.WorkerTasks() {
			if h.Responsive {
				o.answers = append(o.answers, state.Inspection{
					Worker: h.Worker, PID: h.PID, Clock: h.Clock, RequestedAt: now.UnixMicro(), Active: h.Active, Reserved: h.Reserved,
				})
			}
		}
	}
	if now.Second()%5 == 0 {
		o.fold.Reconcile(now.UnixMicro())
	}
}

// check fails if a task that runs is marked.
func (o *observer) check(now time.Time) {
	for _, h := range o.simulation.WorkerTasks() {
		for _, id := range h.Active {
			if got, ok := o.fold.Task(id); ok && got.Lost != nil && !got.State.Final() {
				o.t.Errorf("%s: task %s, which runs on %s (pid %d), is %s there and marked: %+v\n%+v", now.Format(time.TimeOnly),
					id, h.Worker, h.PID, got.State, *got.Lost, got.Executions)
			}
		}
	}
	for reason := range o.lost {
		clear(o.lost[reason])
	}
	for _, t := range o.fold.Tasks(state.Query{States: []state.State{state.Pending, state.Received, state.Started}, Limit: 500}).Tasks {
		if t.Lost != nil {
			if o.lost[t.Lost.Reason] == nil {
				o.lost[t.Lost.Reason] = make(map[string]bool)
			}
			o.lost[t.Lost.Reason][t.ID] = true
		}
	}
}

func TestTasksThatRunAreNeverMarkedLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			simulation, err := simulate.New(simulate.Options{Start: start(), Seed: seed, Rate: 10, Length: 12 * time.Minute, Truth: true})
			if err != nil {
				t.Fatal(err)
			}
			o := observer{
				t: t, simulation: simulation, fold: state.New(state.Options{}), rng: rand.New(rand.NewPCG(seed, 1)),
				lag: time.Duration(seed) * 2 * time.Second, lost: make(map[state.Reason]map[string]bool),
			}
			if seed%2 == 1 {
				o.loss = 50
			}
			o.watch(13 * time.Minute)
			if n := len(o.lost[state.ReasonNotRunning]); o.loss > 0 && n == 0 {
				t.Error("no task whose end was missed is marked")
			} else if o.loss == 0 && n > 0 {
				t.Errorf("%d tasks are not running any more although no event was missed", n)
			}
			t.Logf("orphaned %d, not running %d, expired %d", len(o.lost[state.ReasonOrphaned]), len(o.lost[state.ReasonNotRunning]), len(o.lost[state.ReasonExpired]))
		})
	}
}
