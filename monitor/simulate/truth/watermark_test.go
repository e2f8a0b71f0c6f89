package truth_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/monitor/simulate/truth"
	"github.com/umbelhq/umbel/state"
)

// TestNothingComesAfterTheWatermark has events delivered in order by connection, but for batches of task events. None that was
// sent before the watermark, by a process of a worker that counted, comes after the watermark has passed it.
func TestNothingComesAfterTheWatermark(t *testing.T) {
	t.Parallel()
	marks, lag := 0, int64(0)
	for seed := range histories() {
		h := truth.Generate(seed)
		c := state.New(state.Options{})
		passed := map[clock.Process]int64{} // the greatest watermark at which a process counted
		pings := h.Pings
		for _, e := range h.InBatches() {
			for len(pings) > 0 && pings[0].Probed <= e.ReceivedMicros {
				if p := pings[0]; p.Probed != 0 {
					c.ApplyClockProbe(state.ClockProbe{Worker: p.Process.Hostname, Clock: p.Clock, SentAt: p.Probed})
				}
				pings = pings[1:]
			}
			if e.Kind != state.TaskSent && e.Reported < passed[e.Process()] {
				t.Fatalf("seed %d: %s of %v, sent at %d, came after the watermark %d", seed, e.Subject, e.Process(), e.Reported, passed[e.Process()])
			}
			c.Apply(&e.Event)
			for _, l := range c.Liveness() {
				_, host, _ := strings.Cut(l.Name, "@")
				if o := l.ClockOffset; o != nil && !o.Contains(h.Skew[host]) {
					t.Fatalf("seed %d: the clock of %s is %d µs ahead, which is not in %+v", seed, l.Name, h.Skew[host], *o)
				}
			}
			m := c.Watermark()
			if m.Micros == 0 || !m.Bounded {
				continue
			}
			if m.Micros > e.ReceivedMicros {
				t.Fatalf("seed %d: the watermark is %d µs ahead", seed, m.Micros-e.ReceivedMicros)
			}
			marks, lag = marks+1, lag+e.ReceivedMicros-m.Micros
			for _, w := range c.Workers() {
				if (w.Status == state.Online || w.Status == state.Late) && !slices.Contains(m.UncountedNames, w.Name) {
					p := clock.Process{Hostname: w.Name, PID: w.PID}
					passed[p] = max(passed[p], m.Micros)
				}
			}
		}
		if n := c.LateEvents(); n != 0 {
			t.Fatalf("seed %d: %d events came late", seed, n)
		}
	}
	if marks == 0 {
		t.Fatal("no watermark")
	}
	t.Logf("%d watermarks, %.1f s behind on average", marks, float64(lag)/float64(marks)/1e6)
}
