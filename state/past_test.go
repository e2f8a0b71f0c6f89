package state_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/internal/eventgen"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
)

// received folds bodies that arrive one after the other, a µs apart.
func received(t testing.TB, o state.Options, bodies [][]byte, between func(c *state.Cluster, receipt int64)) {
	t.Helper()
	c := state.New(o)
	var d celery.Decoder
	receipt := at(later)
	for _, b := range bodies {
		d.Decode(b, 0, func(e *state.Event) {
			receipt++
			e.ReceivedMicros = receipt
			c.Apply(e)
			between(c, receipt)
		})
	}
}

// TestTasksAreAsTheyWere compares tasks as of every instant of random histories, whose events arrive in random order and
// some twice, with those that a cluster had which received no more. The events come from a cluster that evicts its tasks
// between them.
func TestTasksAreAsTheyWere(t *testing.T) {
	t.Parallel()
	ignored := cmpopts.IgnoreFields(state.Task{}, "Children", "Orphaned", "Returned", "OrphanReason", "Lost", "Stamp")
	for seed := range uint64(testenv.Trials(100)) {
		rng := rand.New(rand.NewPCG(seed, 7))
		events := bodies(eventgen.New(seed, wild()))
		events = append(events, events[:len(events)/5]...)
		if seed%2 == 0 {
			rng.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		}
		then := map[int64]map[string]state.Task{}
		received(t, state.Options{}, events, func(c *state.Cluster, receipt int64) { then[receipt] = tasks(c) })
		var s shelf
		var last *state.Cluster
		received(t, state.Options{MaxTasks: 1, Track: true}, events, func(c *state.Cluster, _ int64) {
			if last = c; rng.IntN(3) == 0 {
				s.save(t, c, 2)
			}
		})
		s.saveAll(t, last)
		for instant, want := range then {
			r := state.Reader{Until: instant}
			got := map[string]state.Task{}
			for id, saved := range s.tasks {
				switch task, err := r.Task(id, saved); {
				case err == nil:
					got[id] = task
				case !errors.Is(err, state.ErrUnknownYet):
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got, ignored); diff != "" {
				t.Fatalf("seed %d: tasks as of event %d (-then +now):\n%s", seed, instant-at(later), diff)
			}
		}
	}
}

// TestWhatWasConcludedLaterIsUnknown concludes a task to be lost between two instants.
func TestWhatWasConcludedLaterIsUnknown(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{Track: true})
	e := ev(state.TaskReceived, "a", "w1", 10, 1)
	e.ReceivedMicros = at(10)
	c.Apply(&e)
	c.Conclude("a", state.Conclusion{Reason: state.ReasonNotRunning, Evidence: "w1 does not have it", At: at(20)})
	u := c.TakeUnsaved(1)[0]
	if u.FirstReceipt != at(10) || u.ReceivedAt != at(10) {
		t.Errorf("receipts %d and %d, want %d", u.FirstReceipt, u.ReceivedAt, at(10))
	}
	for instant, want := range map[int64]bool{at(15): false, at(25): true} {
		r := state.Reader{Until: instant}
		if task, err := r.Task("a", u.Events); err != nil || (task.Lost != nil) != want {
			t.Errorf("as of %d: lost %+v, %v; want lost: %v", instant, task.Lost, err, want)
		}
	}
	if _, err := (&state.Reader{Until: at(9)}).Task("a", u.Events); !errors.Is(err, state.ErrUnknownYet) {
		t.Errorf("before its first event: %v, want %v", err, state.ErrUnknownYet)
	}
}
