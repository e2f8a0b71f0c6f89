package state_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/state"
)

// TestClockOffsetsContainTheTruth has workers whose clocks are up to an hour off and drift, whose events are late, lost, reordered
// and come in bursts, and that restart under the same pid. Whatever is said of an offset contains it, at any time, and no clock is
// said to have been set.
func TestClockOffsetsContainTheTruth(t *testing.T) {
	t.Parallel()
	closed := 0
	for seed := range uint64(testenv.Trials(300)) {
		h := newClockHistory(seed)
		c := state.New(state.Options{})
		for _, step := range h.steps {
			if step.probe != nil {
				c.ApplyClockProbe(*step.probe)
			} else {
				c.Apply(step.event)
			}
			c.Expire(step.at)
			w, known := c.Worker("w1")
			if w.ClockSetAt != 0 {
				t.Fatalf("seed %d, second %.3f: the clock is said to have been set", seed, float64(step.at-at(0))/1e6)
			}
			if !known || w.ClockOffset == nil {
				continue
			}
			if truth := h.offset(step.at); !w.ClockOffset.Contains(truth) {
				t.Fatalf("seed %d, second %.3f: offset of %d µs is not in %+v", seed, float64(step.at-at(0))/1e6, truth, *w.ClockOffset)
			}
			if w.ClockOffset.Closed() {
				closed++
			}
		}
		h.checkWaits(t, seed, c)
	}
	if closed == 0 {
		t.Error("no offset had both bounds")
	}
}

// TestALateHeartbeatOfAnEndedProcessBoundsNothing has a process whose heartbeat for a probe comes a minute late, after the probe of
// the next process, which has the same pid and the same clock. Later heartbeats are late, too, so that none contradicts it.
func TestALateHeartbeatOfAnEndedProcessBoundsNothing(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{})
	send := func(second float64, clock int64, delay float64, forced bool) {
		e := heartbeat(10, second)
		if forced {
			e = ev(state.WorkerHeartbeat, "", "w1", 10, second)
			e.Freq, e.FreqIsInt, e.Present = 5, true, e.Present|state.FieldFreq
		}
		e.Clock = clock
		apply(c, clocked(e, 0, delay))
		c.Expire(e.Micros + int64(delay*1e6))
		if w, _ := c.Worker("w1"); w.ClockOffset != nil && !w.ClockOffset.Contains(0) {
			t.Fatalf("second %v: %+v, and the clock is right", second+delay, *w.ClockOffset)
		}
	}
	send(1, 1, 0, false)
	c.ApplyClockProbe(state.ClockProbe{Worker: "w1", Clock: 1, SentAt: at(2)})
	c.ApplyClockProbe(state.ClockProbe{Worker: "w1", Clock: 1, SentAt: at(60)}) // another process replied
	send(2, 2, 62, true)
	for i := range 10 {
		send(62+2*float64(i), 3+int64(i), 60, false)
	}
}

// clockHistory is what a worker did and what was received of it.
type clockHistory struct {
	rng   *rand.Rand
	skew  int64   // µs at second 0
	drift float64 // µs a second
	steps []clockStep
	sent  []state.Event // with the true time in ReceivedMicros
}

// clockStep is an event or a reply, received at a local time.
type clockStep struct {
	at    int64
	event *state.Event
	probe *state.ClockProbe
}

func (h *clockHistory) offset(local int64) int64 {
	return h.skew + int64(h.drift*float64(local-at(0))/1e6)
}

func newClockHistory(seed uint64) *clockHistory {
	rng := rand.New(rand.NewPCG(seed, 13))
	h := &clockHistory{rng: rng, skew: rng.Int64N(7200e6) - 3600e6, drift: rng.Float64()*800 - 400}
	clock, pid, stall := int64(0), int64(10), int64(0) // local time until which nothing is delivered
	emit := func(now int64, e state.Event) {
		clock++
		e.Clock, e.Micros, e.ReceivedMicros = clock, now+h.offset(now), now
		h.sent = append(h.sent, e)
		if rng.IntN(20) == 0 { // lost
			return
		}
		late := int64(1_000 + rng.ExpFloat64()*20_000)
		if rng.IntN(20) == 0 {
			late += rng.Int64N(10_000_000)
		}
		e.ReceivedMicros = max(now+late, stall+rng.Int64N(50_000))
		h.steps = append(h.steps, clockStep{at: e.ReceivedMicros, event: &e})
	}
	second := func(now int64) float64 { return float64(now-at(0)) / 1e6 }
	for now, n := at(1), 0; n < 400; n++ {
		now += int64(rng.ExpFloat64() * 2_000_000)
		switch rng.IntN(40) {
		case 0: // a restart, under the same pid more often than not
			clock = 0
			if rng.IntN(3) == 0 {
				pid++
			}
			now += rng.Int64N(6_000_000)
			emit(now, ev(state.WorkerOnline, "", "w1", pid, second(now)))
		case 1: // Umbel reads nothing for a while
			stall = now + rng.Int64N(120_000_000)
		case 2, 3, 4, 5: // a probe, the command of which is lost at times
			if clock > 0 {
				h.steps = append(h.steps, clockStep{at: now, probe: &state.ClockProbe{Worker: "w1", Clock: clock, SentAt: now}})
			}
			now += rng.Int64N(5_000)
			for range rng.IntN(3) { // in between
				emit(now, heartbeat(pid, second(now)))
			}
			if rng.IntN(20) != 0 {
				forced := ev(state.WorkerHeartbeat, "", "w1", pid, second(now))
				forced.Freq, forced.FreqIsInt, forced.Present = 5, true, forced.Present|state.FieldFreq
				emit(now, forced)
			}
		case 6, 7, 8:
			emit(now, ev(state.TaskReceived, "a", "w1", pid, second(now)))
		default:
			emit(now, heartbeat(pid, second(now)))
		}
	}
	slices.SortStableFunc(h.steps, func(a, b clockStep) int { return cmp.Compare(a.at, b.at) })
	return h
}

// checkWaits compares bounds of the time from an event of another clock, which is right, to each of the worker.
func (h *clockHistory) checkWaits(t *testing.T, seed uint64, c *state.Cluster) {
	t.Helper()
	right := ev(state.TaskSent, "b", "gen@web", 1, 0)
	right.Micros = h.sent[0].ReceivedMicros
	right.ReceivedMicros = right.Micros + 5_000
	c.Apply(&right)
	from := state.Moment{Hostname: "gen@web", Client: true, Micros: right.Micros}
	for _, e := range h.sent {
		took := e.ReceivedMicros - right.Micros
		got, ok := c.Elapsed(from, state.Moment{Hostname: "w1", PID: e.PID, Micros: e.Micros})
		if ok && (got.Low > took || got.High < took) {
			t.Fatalf("seed %d: %d µs are said to be %+v", seed, took, got)
		}
		back := state.Moment{Hostname: "w1", PID: h.sent[0].PID, Micros: h.sent[0].Micros}
		if e.PID == back.PID { // of one clock, which drifts
			got, ok = c.Elapsed(back, state.Moment{Hostname: "w1", PID: e.PID, Micros: e.Micros})
			if slack := int64(math.Abs(h.drift)*float64(took)/1e6) + 2; ok && (got.Low > took+slack || got.High < took-slack) {
				t.Fatalf("seed %d: %d µs by one clock are said to be %+v", seed, took, got)
			}
		}
	}
}
