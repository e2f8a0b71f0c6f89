package simulate_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/state"
)

// TestTheSameSimulationAtAnotherTimeHasOtherTasks runs a simulation twice, as a demo does that is started again on its history.
func TestTheSameSimulationAtAnotherTimeHasOtherTasks(t *testing.T) {
	t.Parallel()
	var names [2]bytes.Buffer
	ids := make(map[string]int)
	for n := range 2 {
		start := time.Date(2026, 11, 21, 12, 10*n, 0, 0, time.UTC)
		c, err := simulate.New(simulate.Options{Seed: 1, Rate: 20, Start: start, Length: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var d celery.Decoder
		for m, ok := c.Next(); ok; m, ok = c.Next() {
			d.Decode(m.Body, m.At.UnixMicro(), func(e *state.Event) {
				names[n].WriteString(e.Subject + " " + e.Name + "\n")
				if e.Kind.Task() {
					ids[e.ID] |= 1 << n
				}
			})
		}
	}
	if names[0].String() != names[1].String() || names[0].Len() == 0 {
		t.Error("the same seed gives another simulation at another time")
	}
	for id, in := range ids {
		if in == 3 {
			t.Fatalf("task %s is in both", id)
		}
	}
}
