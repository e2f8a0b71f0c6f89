package state_test

import (
	"math"
	"testing"

	"github.com/umbelhq/umbel/state"
)

// clocked is a worker's event at a second by the local clock, sent by a clock that is so many seconds ahead and under way
// for delay seconds.
func clocked(e state.Event, ahead, delay float64) state.Event {
	sent := e.Micros
	e.Micros = sent + int64(ahead*1e6)
	e.ReceivedMicros = sent + int64(delay*1e6)
	return e
}

func TestClockOffset(t *testing.T) {
	t.Parallel()
	const hour = 3600
	beats := func(from, n int, ahead float64, delay func(i int) float64) (list []state.Event) {
		for i := range n {
			list = append(list, clocked(heartbeat(10, float64(from+2*i)), ahead, delay(i)))
		}
		return list
	}
	at := func(delay float64) func(int) float64 { return func(int) float64 { return delay } }
	shaky := func(i int) float64 { return []float64{0.9, 0.3, 0.01, 0.7}[i%4] }
	backlog := func(n, speed int) func(int) float64 { // n heartbeats, read so many times as fast as they were sent
		return func(i int) float64 { return 2 * float64(n-i) * float64(speed-1) / float64(speed) }
	}
	then := func(lists ...[]state.Event) (all []state.Event) {
		for _, list := range lists {
			all = append(all, list...)
		}
		return all
	}
	for name, tc := range map[string]struct {
		events []state.Event
		want   float64 // seconds
		within float64
	}{
		"right":                            {beats(0, 5, 0, at(0.002)), 0, 0.01},
		"ahead":                            {beats(0, 1, hour, at(0.002)), hour, 0.01},
		"behind":                           {beats(0, 3, -hour, at(0.002)), -hour, 0.01},
		"behind, delayed at times":         {beats(0, 10, -hour, shaky), -hour, 0.02},
		"a backlog is no clock behind":     {then(beats(0, 100, 0, backlog(100, 50)), beats(200, 4, 0, at(0.01))), 0, 0.02},
		"one stall is no clock behind":     {then(beats(0, 20, 0, at(0.01)), beats(40, 10, 0, func(i int) float64 { return float64(20 - 2*i) })), 0, 0.02},
		"set right while it runs":          {then(beats(0, 10, -hour, at(0.01)), beats(20, 4, 0, at(0.01))), 0, 0.02},
		"set wrong while it runs":          {then(beats(0, 10, 0, at(0.01)), beats(20, 40, -hour, at(0.01))), -hour, 0.02},
		"a small difference is told as it": {beats(0, 5, -0.5, at(0.002)), -0.5, 0.01},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := apply(state.New(state.Options{}), tc.events...).Worker("w1")
			if w.ClockOffsetMicros == nil {
				t.Fatal("offset unknown")
			}
			if got := float64(*w.ClockOffsetMicros) / 1e6; got < tc.want-tc.within || got > tc.want+tc.within {
				t.Errorf("offset = %v s, want %v", got, tc.want)
			}
		})
	}
	c := apply(state.New(state.Options{}), beats(0, 50, 0, backlog(100, 50))...)
	if w, _ := c.Worker("w1"); w.ClockOffsetMicros != nil {
		t.Errorf("offset = %d µs in the midst of a backlog, want it unknown", *w.ClockOffsetMicros)
	}
}

// TestAClockThatIsSetBackIsMarked has heartbeats of a process with greater clocks and earlier timestamps, at their own pace.
func TestAClockThatIsSetBackIsMarked(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{})
	for i := range 20 {
		ahead := 0.0
		if i >= 10 {
			ahead = -60
		}
		apply(c, clocked(heartbeat(10, float64(2*i)), ahead, 0.01))
		w, _ := c.Worker("w1")
		if marked := w.ClockSetAt != 0; marked != (i >= 14) {
			t.Errorf("heartbeat %d: marked %t; want it from the fifth one on after the clock was set", i, marked)
		}
	}
}

func TestClockOffsetSurvivesARestartAndAClockThatIsSet(t *testing.T) {
	t.Parallel()
	const hour = 3600
	c := apply(state.New(state.Options{}), clocked(heartbeat(10, 1), hour, 0))
	c.Shift(hour * 1e6)
	w, _ := c.Worker("w1")
	if w.ClockOffsetMicros == nil || *w.ClockOffsetMicros < -10 || w.LastHeartbeatAt != at(1+hour) {
		t.Errorf("after the local clock was set forward too: %+v, want an offset of 0 and a heartbeat an hour later", w)
	}
	restored := state.New(state.Options{})
	if err := c.SaveWorkers(nil, func(_ string, saved []byte) {
		if err := restored.LoadWorker(saved); err != nil {
			t.Fatal(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if w, _ := restored.Worker("w1"); w.ClockOffsetMicros == nil || *w.ClockOffsetMicros < -10 {
		t.Errorf("restored: %+v, want the offset", w)
	}
}

// TestWaitsAcrossClocks has a task that is sent by a client whose clock is right, 3 s before it starts.
func TestWaitsAcrossClocks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ahead, sent float64 // seconds that the clocks of worker and client are ahead
		received    bool    // instead of sent
		want        float64 // seconds
	}{
		"right":                      {0, 0, false, 3},
		"half a second behind":       {-0.5, 0, false, 2.5},
		"an hour ahead":              {3600, 0, false, 3},
		"an hour behind":             {-3600, 0, false, 3},
		"an hour behind, same clock": {-3600, 0, true, 3},
		"client an hour ahead":       {0, 3600, false, 3},
		"client a bit ahead":         {0, 4, false, 3},
		"both ahead":                 {3600, 3600, false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := state.New(state.Options{Track: true})
			for second := range 5 {
				apply(c, clocked(heartbeat(10, float64(2*second)), tc.ahead, 0))
			}
			first := clocked(ev(state.TaskSent, "a", "gen@web", 1, 20), tc.sent, 0)
			if tc.received {
				first = clocked(ev(state.TaskReceived, "a", "w1", 10, 20), tc.ahead, 0)
			}
			started := clocked(ev(state.TaskStarted, "a", "w1", 10, 23), tc.ahead, 0)
			c.Apply(&first)
			ch := c.Apply(&started)
			check := func(when string, task state.Task) {
				got := -1.0
				if task.WaitSeconds != nil {
					got = *task.WaitSeconds
				}
				if math.Abs(got-tc.want) > 1e-3 {
					t.Errorf("%s: wait = %v s, want %v", when, got, tc.want)
				}
			}
			check("folded", mustTask(t, c, "a"))
			if got := float64(ch.WaitMicros) / 1e6; math.Abs(got-tc.want) > 1e-3 {
				t.Errorf("counted with a wait of %v s, want %v", got, tc.want)
			}
			if got := started.Micros - ch.OffsetMicros - at(23); got > 1e6 || got < -1e6 {
				t.Errorf("counted %d µs off", got)
			}
			task, _, err := state.DecodeTask("a", c.TakeUnsaved(1)[0].Events)
			if err != nil {
				t.Fatal(err)
			}
			check("saved and read", task)
		})
	}
}

// TestALostHeartbeatOfAProbe has a probe a minute; the heartbeat of the first one is lost. The next one bounds the clock loosely, and
// tightly when it is known that the process that replied to both is one.
func TestALostHeartbeatOfAProbe(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{})
	clock, closed, exact := int64(0), 0, 0
	for second := 1; second < 600 && exact == 0; second += 2 {
		clock++
		e := heartbeat(10, float64(second))
		e.Clock = clock
		apply(c, clocked(e, 0, 0.01))
		if second%60 == 31 {
			c.ApplyClockProbe(state.ClockProbe{Worker: "w1", Clock: clock, SentAt: at(float64(second))})
			clock++
			if second > 31 {
				e := ev(state.WorkerHeartbeat, "", "w1", 10, float64(second)+0.01)
				e.Freq, e.FreqIsInt, e.Present, e.Clock = 5, true, e.Present|state.FieldFreq, clock
				apply(c, clocked(e, 0, 0.01))
			}
		}
		c.Expire(at(float64(second) + 0.5))
		w, _ := c.Worker("w1")
		if !w.ClockOffset.Contains(0) {
			t.Fatalf("second %d: %+v, and the clock is right", second, *w.ClockOffset)
		}
		if w.ClockOffset.Closed() && closed == 0 {
			closed = second
		}
		if w.ClockOffset.High < 100_000 {
			exact = second
		}
	}
	if closed == 0 || closed > 110 || exact == 0 || exact > 200 {
		t.Errorf("bounded from above at second %d, within 0.1 s at second %d; want 110 and 200 at most", closed, exact)
	}
}
