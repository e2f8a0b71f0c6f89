package simulate_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/state"
)

// One receipt begins on the worker for mail and does not end; the worker goes on.
func TestATaskHangs(t *testing.T) {
	t.Parallel()
	for hung, want := range map[time.Duration]int{0: 0, time.Minute: 1} {
		c, err := simulate.New(simulate.Options{Seed: 3, Start: start(), Hung: hung})
		if err != nil {
			t.Fatal(err)
		}
		var decoder celery.Decoder
		running := map[string]time.Time{}
		for d, ok := c.Next(); ok && d.At.Sub(start()) < 3*time.Minute; d, ok = c.Next() {
			decoder.Decode(d.Body, d.At.UnixMicro(), func(e *state.Event) {
				switch {
				case e.Hostname != "mail@jobs-2" || e.ID == "":
				case e.Kind == state.TaskStarted:
					running[e.ID] = d.At
				default:
					delete(running, e.ID)
				}
			})
		}
		long := 0
		for _, at := range running {
			if at.Sub(start()) < 2*time.Minute {
				long++
			}
		}
		if long != want {
			t.Errorf("Hung %v: %d tasks run on, want %d", hung, long, want)
		}
	}
}
