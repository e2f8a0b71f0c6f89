package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
)

func TestWatermark(t *testing.T) {
	t.Parallel()
	of := func(worker string, e state.Event) state.Event {
		e.Hostname = worker
		return e
	}
	forced := ev(state.WorkerHeartbeat, "", "w1", 10, 5)
	forced.Freq, forced.FreqIsInt, forced.Present = 5, true, forced.Present|state.FieldFreq
	both := []state.Event{
		heartbeat(10, 1), of("w2", heartbeat(20, 2)), heartbeat(10, 3), of("w2", heartbeat(20, 4)), heartbeat(10, 5), heartbeat(10, 7), heartbeat(10, 9),
	}
	for name, tc := range map[string]struct {
		events []state.Event
		now    float64
		want   state.Watermark
	}{
		"one heartbeat tells nothing": {
			[]state.Event{heartbeat(10, 1)}, 1, state.Watermark{Bounded: true, Within: 5e6, Uncounted: 1, UncountedNames: []string{"w1"}},
		},
		"a worker that has come online has sent nothing before": {
			[]state.Event{ev(state.WorkerOnline, "", "w1", 10, 1)}, 1, state.Watermark{Micros: at(1), Worker: "w1", Within: 8e6, Workers: 1},
		},
		"up to the heartbeat before the newest": {
			[]state.Event{heartbeat(10, 1), heartbeat(10, 3)}, 4, state.Watermark{Micros: at(1), Worker: "w1", Within: 8e6, Workers: 1},
		},
		"not up to one that somebody has asked for": {
			[]state.Event{heartbeat(10, 1), heartbeat(10, 3), forced}, 5, state.Watermark{Micros: at(1), Worker: "w1", Within: 8e6, Workers: 1},
		},
		"a silent worker holds it back": {
			append(both, heartbeat(10, 11)), 11, state.Watermark{Micros: at(2), Worker: "w2", Behind: true, Within: 8e6, Workers: 2},
		},
		"until it is offline": {
			append(both[:6:6], heartbeat(10, 20), heartbeat(10, 22)), 23, state.Watermark{Micros: at(20), Worker: "w1", Within: 8e6, Workers: 1},
		},
		"a stopping worker does not count": {
			[]state.Event{
				heartbeat(10, 1), heartbeat(10, 3), of("w2", heartbeat(20, 3)), of("w2", heartbeat(20, 5)), ev(state.TaskReceived, "a", "w1", 10, 3.5),
				ev(state.TaskStarted, "a", "w1", 10, 4), ev(state.WorkerOffline, "", "w1", 10, 5),
			}, 6, state.Watermark{Micros: at(3), Worker: "w2", Within: 8e6, Workers: 1, Uncounted: 1, UncountedNames: []string{"w1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := apply(state.New(state.Options{}), tc.events...)
			c.Expire(at(tc.now))
			got := c.Watermark()
			got.Micros -= got.Micros % 100_000 // clocks may drift
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("watermark (-want +got):\n%s", diff)
			}
		})
	}
}
