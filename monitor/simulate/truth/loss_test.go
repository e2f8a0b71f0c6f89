package truth_test

import (
	"encoding/json"
	"testing"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/monitor/simulate/truth"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/loss"
)

// TestNoLossIsMadeUp compares what is claimed to be missing with what is, after each event that arrives, whether or not Umbel
// restarts meanwhile.
func TestNoLossIsMadeUp(t *testing.T) {
	t.Parallel()
	provable, found, all := int64(0), int64(0), int64(0)
	for seed := range histories() {
		h := truth.Generate(seed)
		arrived := h.Arrived()
		c, d := state.New(state.Options{}), &loss.Detector{}
		missing := map[clock.Process]map[int]bool{} // numbers of task-started events that have been sent and not come
		sent := 0
		for n, i := range arrived {
			e := &h.Events[i]
			for ; sent < len(h.Events) && h.Events[sent].Reported <= e.ReceivedMicros; sent++ {
				if s := &h.Events[sent]; s.Kind == state.TaskStarted {
					if missing[s.Process()] == nil {
						missing[s.Process()] = map[int]bool{}
					}
					missing[s.Process()][sent] = true
				}
			}
			delete(missing[e.Process()], i)
			d.Add(&e.Event, c.Apply(&e.Event))
			checkClaims(t, seed, h, d, missing)
			if n == len(arrived)/2 && seed%2 == 0 {
				d = restarted(t, h, d)
			}
		}
		n := provableLosses(h)
		provable, found, all = provable+n, found+min(n, d.Missing()), all+d.Missing()
	}
	t.Logf("%d losses proved; of %d that executions prove, %d", all, provable, found)
	if found*100 < provable*95 {
		t.Errorf("%d of %d losses were proved, want 95 %%", found, provable)
	}
}

// checkClaims fails if more is claimed than is missing, of a process or between two clocks.
func checkClaims(t *testing.T, seed uint64, h *truth.History, d *loss.Detector, missing map[clock.Process]map[int]bool) {
	t.Helper()
	total := int64(0)
	for _, lost := range missing {
		total += int64(len(lost))
	}
	if d.Missing() > total {
		t.Fatalf("seed %d: %d events are claimed to be missing, of %d that are", seed, d.Missing(), total)
	}
	claimed := map[clock.Process]int64{}
	for _, g := range d.Gaps() {
		p := clock.Process{Hostname: g.Worker, PID: g.PID}
		claimed[p] += g.Missing
		within := int64(0)
		for i := range missing[p] {
			if e := &h.Events[i]; e.Clock > g.After && e.Clock < g.Before {
				within++
			}
		}
		if g.Missing < 1 || g.Missing > within || claimed[p] > int64(len(missing[p])) {
			t.Fatalf("seed %d: %+v is claimed, and %d events are missing there", seed, g, within)
		}
	}
}

// restarted returns what is left of a detector after a restart, which must claim the same.
func restarted(t *testing.T, h *truth.History, d *loss.Detector) *loss.Detector {
	t.Helper()
	next, loaded := &loss.Detector{}, map[string]bool{}
	for _, l := range h.Workers {
		name := l.Process.Hostname
		if loaded[name] {
			continue
		}
		loaded[name] = true
		saved, err := json.Marshal(map[string]any{"Name": name, "Losses": d.Save(name)})
		if err == nil {
			err = next.LoadWorker(saved)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if got, want := next.Missing(), d.Missing(); got != want {
		t.Fatalf("%d events are missing after a restart, %d before", got, want)
	}
	return next
}

// provableLosses counts the task-started events that were lost although the receipt and the success or retry of their execution, a first
// attempt, were not.
func provableLosses(h *truth.History) int64 {
	received, ended := map[int]bool{}, map[int]bool{}
	for i := range h.Events {
		e := &h.Events[i]
		switch {
		case e.Lost:
		case e.Kind == state.TaskReceived:
			received[e.Execution] = e.Retries == 0
		case e.Kind == state.TaskSucceeded, e.Kind == state.TaskRetried:
			ended[e.Execution] = true
		default:
		}
	}
	n := int64(0)
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind == state.TaskStarted && e.Lost && received[e.Execution] && ended[e.Execution] {
			n++
		}
	}
	return n
}
