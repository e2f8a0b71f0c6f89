package simulate_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/state"
)

// fold returns what package state makes of a simulation.
func fold(t *testing.T, s recording) *state.Cluster {
	t.Helper()
	c := state.New(state.Options{})
	var d celery.Decoder
	for _, m := range s.deliveries {
		d.Decode(m.Body, m.At.UnixMicro(), func(e *state.Event) { c.Apply(e) })
	}
	if r := d.Rejected(); len(r) > 0 {
		t.Errorf("events that could not be used: %v", r)
	}
	return c
}

func TestFoldFindsTheTruth(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			s := record(t, simulate.Options{Seed: seed, Rate: 20, Length: 4 * time.Minute, Truth: true}, 10*time.Hour)
			c := fold(t, s)
			truth := s.cluster.Truth()
			if got, want := c.Counts().Tasks, len(truth); got != want {
				t.Errorf("fold knows %d tasks, want %d", got, want)
			}
			for _, want := range truth {
				got, ok := c.Task(want.ID)
				if !ok {
					t.Errorf("fold does not know task %s", want.ID)
					continue
				}
				if diff := cmp.Diff(seen(got, want), want); diff != "" {
					t.Errorf("task %s (-fold +truth):\n%s", want.ID, diff)
				}
				n := len(want.Executions)
				if lost := n > 0 && want.Executions[n-1].Lost; got.Orphaned != lost {
					t.Errorf("task %s orphaned = %t, want %t", want.ID, got.Orphaned, lost)
				}
			}
		})
	}
}

// seen is a task of the fold in terms of the truth. What no event tells is taken from the truth: the
// name and root of a task that no worker has registered, and which of its older executions were lost.
func seen(got state.Task, truth simulate.TaskTruth) simulate.TaskTruth {
	x := simulate.TaskTruth{ID: got.ID, Name: truth.Name, Root: truth.Root, State: got.State}
	if got.Name != nil {
		x.Name = *got.Name
	}
	if got.RootID != nil {
		x.Root = *got.RootID
	}
	if got.Worker != nil {
		x.Worker = *got.Worker
	}
	for i, e := range got.Executions {
		x.Attempts = e.Attempt + 1
		y := simulate.ExecutionTruth{Attempt: e.Attempt, Worker: e.Worker, PID: e.PID, State: e.State}
		if i < len(truth.Executions) {
			y.Lost = truth.Executions[i].Lost
		}
		x.Executions = append(x.Executions, y)
	}
	return x
}

func TestSimulationEndsWhenAllIsDone(t *testing.T) {
	t.Parallel()
	s := record(t, simulate.Options{Seed: 4, Length: 5 * time.Minute, Truth: true}, 24*time.Hour)
	if end := s.deliveries[len(s.deliveries)-1].At.Sub(start()); end < 5*time.Minute || end > 20*time.Minute {
		t.Errorf("simulation of 5 min ends after %v", end)
	}
	for _, x := range s.cluster.Truth() {
		n := len(x.Executions)
		if n == 0 || !x.State.Final() && !x.Executions[n-1].Lost {
			t.Errorf("task %s was left as %s: %+v", x.ID, x.State, x.Executions)
		}
	}
}

func TestTruthIsForgottenUnlessWanted(t *testing.T) {
	t.Parallel()
	s := record(t, simulate.Options{Seed: 4}, 10*time.Second)
	if got := s.cluster.Truth(); got != nil {
		t.Errorf("Truth without Options.Truth = %d tasks, want none", len(got))
	}
}
