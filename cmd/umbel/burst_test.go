package main_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/simulate"
)

// burst is how many events come at once: received, started and succeeded of a third as many tasks.
var burst = 72 * testenv.Trials(833)

func TestEndToEndNothingIsLostInABurst(t *testing.T) {
	t.Parallel()
	singles := simulate.Typical(burst, 1)
	arrays := simulate.Typical(burst, 24)
	for name, test := range map[string]struct {
		newBroker func(testing.TB) string
		bodies    [][]byte
	}{
		"RabbitMQ, single messages": {testenv.VirtualHost, singles},
		"RabbitMQ, arrays of 24":    {testenv.VirtualHost, arrays},
		"Redis, single messages":    {ownRedis, singles},
		"Redis, arrays of 24":       {ownRedis, arrays},
	} {
		bodies := test.bodies
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := test.newBroker(t)
			d := start(t, nil, "serve", "--broker-url", broker)
			d.connected(t)
			ids := make(map[string]bool, burst/3)
			for _, body := range singles {
				ids[eventOf(t, body).UUID] = true
			}
			b := newBus(t, broker)
			polled := pollReady(t, d)

			begin := time.Now()
			b.publishAll(t, bodies)
			published := time.Since(begin)
			o := d.folded(t, burst)
			folded := time.Since(begin)
			t.Logf("%d events in %d messages: published in %v, folded after %v (%.0f events/s), /readyz asked %d times",
				burst, len(bodies), published.Round(time.Millisecond), folded.Round(time.Millisecond), float64(burst)/folded.Seconds(), polled())

			if o.Counts.Tasks != len(ids) || o.Counts.ByState["SUCCESS"] != len(ids) || o.Health.Messages != len(bodies) || len(o.Health.Rejected) > 0 {
				t.Errorf("overview has %+v, want %d tasks, all in SUCCESS", o, len(ids))
			}
			for _, got := range d.tasks(t) {
				if !ids[got.ID] || got.State != "SUCCESS" || len(got.Executions) != 1 || got.ReceivedAt == nil || got.StartedAt == nil {
					t.Fatalf("task is %+v, want a complete one of those published, once", got)
				}
				delete(ids, got.ID)
			}
			if len(ids) > 0 {
				t.Errorf("%d tasks are not in the list", len(ids))
			}
		})
	}
}

// pollReady asks /readyz again and again, and fails the test if it ever says no. The function that it
// returns stops that and says how often it has asked.
func pollReady(tb testing.TB, d *dashboard) func() int {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	var wg sync.WaitGroup
	asked := 0
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			status, body, err := fetch(ctx, d.url+"readyz")
			if ctx.Err() == nil && (err != nil || status != http.StatusOK) {
				tb.Errorf("readyz answered %d %s %v", status, body, err)
			}
			asked++
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	stop := func() int {
		cancel()
		wg.Wait()
		return asked
	}
	tb.Cleanup(func() { stop() })
	return stop
}
