package simulate_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/loss"
)

// TestLossesAreProved drops messages, delays others, and compares what the detector claims with what was dropped.
func TestLossesAreProved(t *testing.T) {
	t.Parallel()
	provable, proved := int64(0), int64(0)
	for seed := range uint64(testenv.Trials(20)) {
		s := record(t, simulate.Options{Seed: seed, Rate: 20, Length: 4 * time.Minute}, 10*time.Hour)
		h := newLossyHistory(seed, s)
		for i, want := range h.missingBehind {
			if got := h.claimed[i]; got > want {
				t.Fatalf("seed %d: after message %d, %d events are claimed to be missing, of %d that were", seed, i, got, want)
			}
		}
		for _, g := range h.detector.Gaps() {
			if dropped := h.droppedIn(g); g.Missing > dropped || g.Missing < 1 {
				t.Errorf("seed %d: claims %d dropped events where %d were: %+v", seed, g.Missing, dropped, g)
			}
		}
		provable, proved = provable+h.provable(), proved+h.detector.Missing()
	}
	if proved*100 < provable*95 {
		t.Errorf("%d of %d losses were proved, want 95 %%", proved, provable)
	}
	t.Logf("%d of %d losses proved", proved, provable)
}

// lossyHistory is a simulation of which an observer missed events.
type lossyHistory struct {
	cluster                *state.Cluster
	detector               loss.Detector
	dropped                map[clock.Process][]state.Event // task-started
	span                   map[clock.Process][2]int64      // timestamps of the second and of the last but one heartbeat seen
	missingBehind, claimed []int64                         // after each message
}

func newLossyHistory(seed uint64, s recording) *lossyHistory {
	h := &lossyHistory{cluster: state.New(state.Options{}), dropped: map[clock.Process][]state.Event{}, span: map[clock.Process][2]int64{}}
	rng := rand.New(rand.NewPCG(seed, 1))
	heartbeats := map[clock.Process][]int64{}
	var d celery.Decoder
	missing := int64(0)
	var delayed []state.Event
	for i, m := range s.deliveries {
		drop, late := rng.IntN(20) == 0, rng.IntN(20) == 0
		d.Decode(m.Body, m.At.UnixMicro(), func(e *state.Event) {
			l := clock.Process{Hostname: e.Hostname, PID: e.PID}
			switch {
			case drop:
				if e.Kind == state.TaskStarted {
					h.dropped[l] = append(h.dropped[l], *e)
					missing++
				}
			case late:
				delayed = append(delayed, *e)
				if e.Kind == state.TaskStarted {
					missing++ // until it comes
				}
			default:
				h.detector.Add(e, h.cluster.Apply(e))
				if e.Kind == state.WorkerHeartbeat {
					heartbeats[l] = append(heartbeats[l], e.Micros)
				}
			}
		})
		if len(delayed) > 0 && (rng.IntN(50) == 0 || i == len(s.deliveries)-1) {
			for k := range delayed {
				if delayed[k].Kind == state.TaskStarted {
					missing--
				}
				h.detector.Add(&delayed[k], h.cluster.Apply(&delayed[k]))
			}
			delayed = nil
		}
		h.missingBehind, h.claimed = append(h.missingBehind, missing), append(h.claimed, h.detector.Missing())
	}
	for l, at := range heartbeats {
		if len(at) > 3 {
			h.span[l] = [2]int64{at[1], at[len(at)-2]}
		}
	}
	return h
}

// droppedIn counts the dropped events in a gap.
func (h *lossyHistory) droppedIn(g loss.Gap) int64 {
	n := int64(0)
	for _, e := range h.dropped[clock.Process{Hostname: g.Worker, PID: g.PID}] {
		if e.Clock > g.After && e.Clock < g.Before {
			n++
		}
	}
	return n
}

// provable counts the dropped events between heartbeats that were seen.
func (h *lossyHistory) provable() int64 {
	n := int64(0)
	for l, events := range h.dropped {
		for _, e := range events {
			if e.Micros > h.span[l][0] && e.Micros < h.span[l][1] {
				n++
			}
		}
	}
	return n
}
