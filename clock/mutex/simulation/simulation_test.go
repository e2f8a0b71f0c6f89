package simulation_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/clock/mutex/simulation"
)

// typical are the defaults of the command line.
func typical() simulation.Options {
	return simulation.Options{Processes: 10, Cycles: 10_000, Seed: 1, Want: 0.1, Hold: 0.5, Delay: 0.3}
}

func TestTenProcessesForTenThousandCycles(t *testing.T) {
	t.Parallel()
	var steps int
	o := typical()
	o.Observe = func(e simulation.Event) {
		if steps++; e.Step != steps {
			t.Fatalf("step %d is called %d", steps, e.Step)
		}
	}
	got, err := simulation.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got.Claims < 1000 || got.Claims != got.Releases || got.Messages != 27*got.Claims || got.MessagesPerClaim() != 27 {
		t.Errorf("run = %+v with %v messages per claim, want as many releases as claims, and 27", got, got.MessagesPerClaim())
	}
	if want := 2*got.Claims + got.Messages; steps != want {
		t.Errorf("%d steps, want %d: a request and a release for each claim, and every message received", steps, want)
	}
	again, err := simulation.Run(t.Context(), typical())
	if err != nil || again != got {
		t.Errorf("the same seed gives %+v, %v, want %+v", again, err, got)
	}
}

// TestRandomSchedules runs the algorithm as the model of itself: all its invariants are checked after every step.
func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		probability := rapid.Float64Range(0, 1)
		o := simulation.Options{
			Processes: rapid.IntRange(2, 8).Draw(t, "processes"), Cycles: rapid.IntRange(1, 200).Draw(t, "cycles"), Seed: rapid.Uint64().Draw(t, "seed"),
			Want: probability.Draw(t, "want"), Hold: probability.Draw(t, "hold"), Delay: probability.Draw(t, "delay"),
		}
		got, err := simulation.Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got.Claims != got.Releases || got.Messages != 3*(o.Processes-1)*got.Claims {
			t.Fatalf("%d processes: %+v, want 3(n-1) messages for each claim", o.Processes, got)
		}
	})
}

// TestEveryRunOfSmallSystems covers three processes that request the lock twice, as soon as they may, in every order of deliveries and releases; and
// smaller systems, where requests are made at any time.
func TestEveryRunOfSmallSystems(t *testing.T) {
	t.Parallel()
	spaces := map[string]simulation.Space{
		"3 processes, 1 request":  {Processes: 3, Requests: 1},
		"2 processes, 4 requests": {Processes: 2, Requests: 4},
	}
	if !raceDetector { // ten times slower with it; make test runs this package without it too
		spaces["3 processes, 2 requests"] = simulation.Space{Processes: 3, Requests: 2, Prompt: true, Reduced: true}
	}
	for name, x := range spaces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x.Limit = 2_000_000
			found := x.Explore()
			if found.Failure != nil {
				t.Fatalf("%v after %v", found.Failure, found.Failure.Schedule)
			}
			t.Logf("%d states, %d steps", found.States, found.Steps)
			if !found.Complete {
				t.Errorf("not all states are among %d", found.States)
			}
		})
	}
}

// TestReductionFindsTheSameFaults compares the reduced search with the full one, where both can be made.
func TestReductionFindsTheSameFaults(t *testing.T) {
	t.Parallel()
	for _, fault := range []simulation.Fault{simulation.NoFault, simulation.FIFO, simulation.Ack, simulation.Tie} {
		full := simulation.Space{Processes: 2, Requests: 2, Fault: fault, Limit: 100_000}
		reduced := full
		reduced.Reduced = true
		a, b := full.Explore(), reduced.Explore()
		if (a.Failure == nil) != (fault == simulation.NoFault) || (b.Failure == nil) != (a.Failure == nil) {
			t.Errorf("fault %q: full search finds %v, reduced %v", fault, a.Failure, b.Failure)
		}
		if fault == simulation.NoFault && (!a.Complete || !b.Complete || b.States >= a.States) {
			t.Errorf("full search has %d states, reduced %d", a.States, b.States)
		}
	}
}

func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	for _, fault := range []simulation.Fault{simulation.FIFO, simulation.Ack, simulation.Tie} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			o := typical()
			o.Fault = fault
			_, err := simulation.Run(t.Context(), o)
			f, ok := errors.AsType[*simulation.InvariantError](err)
			if !ok {
				t.Fatalf("run: %v, want a failure", err)
			}
			if f.Processes != 2 || len(f.Schedule) != 4 || f.Shortest != simulation.OneOwner || !f.Complete {
				t.Errorf("schedule of %d processes breaks %q: %v, want 4 steps after which there are two owners", f.Processes, f.Shortest, f.Schedule)
			}
			if last := f.Schedule[len(f.Schedule)-1]; !last.Granted {
				t.Errorf("the schedule ends with %v, want a grant", last)
			}
		})
	}
}

func TestFaultIsShownThoughTheRunHeld(t *testing.T) {
	t.Parallel()
	o := simulation.Options{Processes: 3, Cycles: 1, Seed: 1, Fault: simulation.Ack}
	_, err := simulation.Run(t.Context(), o)
	f, ok := errors.AsType[*simulation.InvariantError](err)
	if !ok || f.Cycle != 0 || f.Invariant != simulation.OneOwner || len(f.Schedule) != 4 {
		t.Errorf("run without claims: %v, want a schedule that shows the fault", err)
	}
}

func TestOptionsOutOfRange(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*simulation.Options){
		"processes must be 2 to 100, not 1":                  func(o *simulation.Options) { o.Processes = 1 },
		"processes must be 2 to 100, not 101":                func(o *simulation.Options) { o.Processes = 101 },
		"cycles must be 1 to 1000000, not 0":                 func(o *simulation.Options) { o.Cycles = 0 },
		"want is a probability and must be 0 to 1, not -0.1": func(o *simulation.Options) { o.Want = -0.1 },
		"hold is a probability and must be 0 to 1, not 2":    func(o *simulation.Options) { o.Hold = 2 },
		"delay is a probability and must be 0 to 1, not NaN": func(o *simulation.Options) { o.Delay = math.NaN() },
		`there is no fault "luck"`:                           func(o *simulation.Options) { o.Fault = "luck" },
	} {
		o := typical()
		change(&o)
		if _, err := simulation.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
