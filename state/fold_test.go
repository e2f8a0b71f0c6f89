package state_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/internal/eventgen"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
)

// fold applies raw event bodies in order. As in replay, events arrive when they happen.
func fold(t testing.TB, rules state.Rules, bodies []json.RawMessage) *state.Cluster {
	t.Helper()
	c := state.New(state.Options{Rules: rules})
	var d celery.Decoder
	for _, b := range bodies {
		lost, cause := d.Decode(b, 0, func(e *state.Event) {
			e.ReceivedMicros = e.Micros
			c.Apply(e)
		})
		if lost > 0 {
			t.Fatalf("body %s: %s", b, cause)
		}
	}
	return c
}

// tasks returns all tasks by id, children sorted.
func tasks(c *state.Cluster) map[string]state.Task {
	all := make(map[string]state.Task)
	for _, task := range c.Tasks(state.Query{Limit: 500}).Tasks {
		slices.Sort(task.Children)
		all[task.ID] = task
	}
	return all
}

// ignoreStamps leaves out what may depend on arrival.
func ignoreStamps() cmp.Option {
	return cmp.Options{cmpopts.IgnoreTypes(clock.Stamp{}), cmpopts.EquateEmpty()}
}

func wild() eventgen.Options {
	return eventgen.Options{Tasks: 5, Deaths: true, Custom: true, Revoked: true, Rejected: true, Discarded: true, Doubled: true, Replaced: true}
}

// histories is how many random histories a test folds.
var histories = uint64(testenv.Trials(600))

func TestCausalFoldIgnoresArrivalOrderAndRepetition(t *testing.T) {
	t.Parallel()
	for seed := range histories {
		o := wild()
		o.SamePID = seed%3 == 0
		h := eventgen.New(seed, o)
		want := tasks(fold(t, state.Causal, h.Events))
		for n := range uint64(3) {
			got := tasks(fold(t, state.Causal, eventgen.Shuffle(seed*10+n, h.Events)))
			if diff := cmp.Diff(want, got, ignoreStamps()); diff != "" {
				t.Fatalf("seed %d, shuffle %d: task depends on arrival (-in order +shuffled):\n%s", seed, n, diff)
			}
		}
		senseless := eventgen.Wild(seed, 30)
		want = tasks(fold(t, state.Causal, senseless))
		got := tasks(fold(t, state.Causal, eventgen.Shuffle(seed, senseless)))
		if diff := cmp.Diff(want, got, ignoreStamps(), cmpopts.IgnoreFields(state.Task{}, "Orphaned", "Returned", "OrphanReason", "Lost")); diff != "" {
			t.Fatalf("seed %d: task of senseless events depends on arrival (-one order +another):\n%s", seed, diff)
		}
	}
}

// TestCausalFoldFindsTheTruthInAnyOrder allows a few errors only where a worker comes back under the same
// pid and its clock has already passed the old one when the next event of the task is seen: nothing in the
// events of that task then tells the two processes apart.
func TestCausalFoldFindsTheTruthInAnyOrder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		samePID bool
		allowed float64 // share of tasks
	}{
		"new pid after a death":  {false, 0},
		"same pid after a death": {true, 0.005},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong, total := 0, 0
			for seed := range histories {
				o := wild()
				o.SamePID = tc.samePID
				h := eventgen.New(seed, o)
				got := tasks(fold(t, state.Causal, eventgen.Shuffle(seed, h.Events)))
				for id, want := range h.Truth {
					total++
					if task := got[id]; string(task.State) != want.State || task.State == state.Success && *task.Worker != want.Worker {
						wrong++
						t.Logf("seed %d task %s: got %s on %v, want %+v", seed, id, task.State, *task.Worker, want)
					}
				}
			}
			if float64(wrong) > tc.allowed*float64(total) {
				t.Errorf("%d of %d tasks differ from the truth", wrong, total)
			}
		})
	}
}

// TestMergedHalvesEqualTheWhole loads into a cluster the tasks that another one has saved, of overlapping events.
func TestMergedHalvesEqualTheWhole(t *testing.T) {
	t.Parallel()
	for seed := range histories / 3 {
		h := eventgen.New(seed, wild())
		rng := rand.New(rand.NewPCG(seed, 3))
		var a, b []json.RawMessage
		for _, e := range h.Events {
			n := rng.IntN(3)
			if n != 0 {
				a = append(a, e)
			}
			if n != 1 {
				b = append(b, e)
			}
		}
		want := fold(t, state.Causal, h.Events)
		got := fold(t, state.Causal, a)
		other := tracked(t, state.Options{}, bodies(eventgen.History{Events: b}), func(*state.Cluster) {})
		for _, u := range other.TakeUnsaved(other.Unsaved()) {
			if err := got.Load(u.View.ID, u.Events); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(tasks(want), tasks(got), ignoreStamps()); diff != "" {
			t.Fatalf("seed %d: merged halves differ from the whole (-whole +merged):\n%s", seed, diff)
		}
	}
}

// TestCausalEqualsCeleryInCalmOrder holds on histories in order of the observer, without redelivery, revocation
// after a custom state, or rejection after a start. Fields that Celery carries over from an older attempt, on
// purpose not here, are left out once a task was retried: exception, traceback and the times of states.
func TestCausalEqualsCeleryInCalmOrder(t *testing.T) {
	t.Parallel()
	ignore := cmpopts.IgnoreFields(state.Task{}, "Executions", "Revocation", "WaitedSince", "WaitSeconds", "UpdatedAt", "Orphaned", "Returned", "OrphanReason", "Lost", "Redelivered")
	for seed := range histories {
		h := eventgen.New(seed, eventgen.Options{Revoked: true, Discarded: true})
		want, got := tasks(fold(t, state.Celery, h.Events)), tasks(fold(t, state.Causal, h.Events))
		for id := range want {
			a, b := want[id], got[id]
			if b.Retries != nil && *b.Retries > 0 || len(b.Executions) > 1 {
				a.Exception, a.Traceback, a.Times = b.Exception, b.Traceback, b.Times
			}
			if b.State == state.Revoked { // never received: which attempt it was, only the causal fold says
				a.Retries, a.Args, a.Kwargs = b.Retries, b.Args, b.Kwargs
			}
			if diff := cmp.Diff(a, b, ignoreStamps(), ignore); diff != "" {
				t.Fatalf("seed %d: rules differ on a calm history (-celery +causal):\n%s", seed, diff)
			}
		}
	}
}

// TestCausalFoldEqualsTheReference folds histories of which events are missing, late, repeated and disturbed.
func TestCausalFoldEqualsTheReference(t *testing.T) {
	t.Parallel()
	for seed := range histories {
		rng := rand.New(rand.NewPCG(seed, 5))
		often := func() bool { return rng.IntN(4) != 0 }
		h := eventgen.New(seed, eventgen.Options{
			Tasks: 5, Deaths: often(), SamePID: !often(), Custom: often(), Revoked: often(), Rejected: often(), Discarded: often(), Doubled: often(), Replaced: often(),
		})
		lossy := slices.DeleteFunc(slices.Clone(h.Events), func(json.RawMessage) bool { return rng.IntN(6) == 0 })
		disturbed := disturb(t, rng, h.Events)
		for name, stream := range map[string][]json.RawMessage{
			"in order": h.Events, "lossy": lossy, "lossy and shuffled": eventgen.Shuffle(seed, lossy),
			"disturbed": disturbed, "disturbed and shuffled": eventgen.Shuffle(seed, disturbed),
		} {
			equalsReference(t, fmt.Sprintf("seed %d, %s", seed, name), stream)
		}
	}
}

// disturb changes events in ways that the histories do not know: processes that report late, have no
// clocks or ones that stand still, share a node name, or have wall clocks that stand still for a second.
func disturb(t *testing.T, rng *rand.Rand, bodies []json.RawMessage) []json.RawMessage {
	t.Helper()
	events := make([]map[string]any, len(bodies))
	for i, body := range bodies {
		if err := json.Unmarshal(body, &events[i]); err != nil {
			t.Fatal(err)
		}
	}
	late, shared, coarse := rng.IntN(2) == 0, rng.IntN(4) == 0, rng.IntN(4) == 0
	var clockless any
	if rng.IntN(4) == 0 {
		clockless = events[rng.IntN(len(events))]["hostname"]
	}
	for _, e := range events {
		if o := events[rng.IntN(len(events))]; late && rng.IntN(3) == 0 && o["pid"] == e["pid"] {
			e["clock"], o["clock"] = o["clock"], e["clock"]
			e["timestamp"], o["timestamp"] = o["timestamp"], e["timestamp"]
		}
		if kind, _ := e["type"].(string); shared && kind != "task-sent" && e["hostname"] != clockless {
			e["hostname"] = "celery@shared"
		}
		if at, ok := e["timestamp"].(float64); ok && coarse {
			e["timestamp"] = math.Floor(at)
		}
	}
	out := make([]json.RawMessage, len(events))
	still := rng.IntN(2) == 0
	for i, e := range events {
		switch {
		case e["hostname"] != clockless:
		case still:
			e["clock"] = 1
		default:
			delete(e, "clock")
		}
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = body
	}
	return out
}

func equalsReference(t *testing.T, name string, stream []json.RawMessage) {
	t.Helper()
	events := make(map[string][]*wire)
	for _, body := range stream {
		e := new(wire)
		if err := json.Unmarshal(body, e); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(e.Type, "task-") {
			events[e.UUID] = append(events[e.UUID], e)
		}
	}
	got := tasks(fold(t, state.Causal, stream))
	notRefolded := cmpopts.IgnoreFields(state.Task{}, "Kwargs", "ETA", "Expires", "Traceback", "Client", "Queue", "Exchange", "RoutingKey", "Children",
		"SentAt", "UpdatedAt", "Revocation", "WaitedSince", "WaitSeconds", "RuntimeSeconds", "Redelivered", "Orphaned", "Returned", "OrphanReason", "Lost")
	for id, of := range events {
		if diff := cmp.Diff(reference(id, of), got[id], ignoreStamps(), notRefolded,
			cmpopts.IgnoreFields(state.Execution{}, "Traceback", "RuntimeSeconds", "Revocation")); diff != "" {
			slices.SortFunc(of, byTime)
			for _, e := range of {
				t.Logf("%s %s.%d clock %d at %.3f attempt %d", e.Type, e.Hostname, e.PID, e.Clock, e.Timestamp-1_790_000_000, e.Retries)
			}
			t.Fatalf("%s, task %s (-reference +fold):\n%s", name, id, diff)
		}
	}
}
