package remote_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

// TestPoolAndQueuesAreRecorded checks what a worker reports, and that it does not count as a consumer once it has gone.
func TestPoolAndQueuesAreRecorded(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		answers := idle()
		answers["stats"] = `{"pool":{"implementation":"celery.concurrency.prefork:TaskPool","max-concurrency":2}}`
		var left atomic.Bool
		f.add(t, "w1", func(r request) []answer {
			if left.Load() {
				return nil
			}
			return tells(answers)(r)
		})
		c := newClient(t, f)
		run(t, c.Run)
		alive := []string{"w1"}
		recorded := map[string]state.LastReport{}
		i, err := remote.NewInspector(remote.InspectorOptions{
			Client: c, Alive: func() []string { return alive },
			Record: func(reports map[string]state.LastReport) { recorded = reports },
		})
		if err != nil {
			t.Fatalf("new inspector: %v", err)
		}
		i.Topology(t.Context())
		got := recorded["w1"]
		if got.Pool != "prefork" || got.Slots == nil || *got.Slots != 2 || !slices.Equal(got.Queues, []string{"celery"}) ||
			time.Since(time.UnixMicro(got.At)).Abs() > time.Second {
			t.Errorf("recorded %+v, want its pool and queue as of now", got)
		}
		alive = nil
		left.Store(true)
		<-time.After(24 * time.Hour)
		if got := i.Topology(t.Context()); len(got.Queues) != 0 {
			t.Errorf("a worker that has gone counts as a consumer: %v", got.Queues)
		}
		if len(recorded) != 0 {
			t.Errorf("recorded %+v of a worker that has gone", recorded)
		}
	})
}
