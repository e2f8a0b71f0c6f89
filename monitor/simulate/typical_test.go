package simulate_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/state"
)

func TestTypicalHoldsWholeTasks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		n, batch int
		messages int
		last     int // events in the last message
	}{
		"nothing":       {0, 24, 0, 0},
		"objects":       {48, 1, 48, 1},
		"objects by 0":  {48, 0, 48, 1},
		"full arrays":   {48, 24, 2, 24},
		"a rest":        {50, 24, 3, 2},
		"small batches": {24, 7, 4, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bodies := simulate.Typical(tt.n, tt.batch)
			var got, last int
			for _, b := range bodies {
				events, err := parse(b)
				if err != nil {
					t.Fatalf("%v: %s", err, b)
				}
				if array := b[0] == '['; array != (tt.batch > 1) {
					t.Errorf("array = %t with batches of %d", array, tt.batch)
				}
				last = len(events)
				got += last
			}
			if diff := cmp.Diff([]int{got, len(bodies), last}, []int{tt.n, tt.messages, tt.last}); diff != "" {
				t.Errorf("events, messages, events in the last (-got +want):\n%s", diff)
			}
		})
	}
}

func TestTypicalTasksSucceed(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{})
	var d celery.Decoder
	for _, b := range simulate.Typical(2_400, 24) {
		d.Decode(b, start().UnixMicro(), func(e *state.Event) { c.Apply(e) })
	}
	want := map[state.State]int{state.Success: 800}
	if diff := cmp.Diff(c.Counts().ByState, want); diff != "" {
		t.Errorf("tasks by state (-got +want):\n%s", diff)
	}
	if !bytes.Equal(simulate.Typical(9, 3)[2], simulate.Typical(9, 3)[2]) {
		t.Error("two calls differ")
	}
}

func BenchmarkTypical(b *testing.B) {
	const events = 24_000
	for b.Loop() {
		simulate.Typical(events, 24)
	}
	b.ReportMetric(float64(b.N*events)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkNext reports how much faster than real time a simulation runs: virtual seconds per second.
func BenchmarkNext(b *testing.B) {
	for _, rate := range []float64{20, 5_000} {
		b.Run(fmt.Sprintf("rate=%v", rate), func(b *testing.B) {
			c, err := simulate.New(simulate.Options{Seed: 1, Start: start(), Rate: rate})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var last time.Time
			for b.Loop() {
				d, _ := c.Next()
				last = d.At
			}
			b.ReportMetric(last.Sub(start()).Seconds()/b.Elapsed().Seconds(), "virtual_s/s")
		})
	}
}
