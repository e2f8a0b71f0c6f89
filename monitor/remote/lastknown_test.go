package remote_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
)

// What workers have told of their pools and queues is kept when they have gone, until they are forgotten.
func TestPoolAndQueuesOutliveTheirWorker(t *testing.T) {
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
		i, err := remote.NewInspector(remote.InspectorOptions{Client: c, Alive: func() []string { return alive }})
		if err != nil {
			t.Fatalf("new inspector: %v", err)
		}
		i.Topology(t.Context())
		at := time.Now()
		alive = nil
		left.Store(true)
		<-time.After(24 * time.Hour)
		if got := i.Topology(t.Context()); len(got.Queues) != 0 {
			t.Errorf("a worker that has gone counts as a consumer: %v", got.Queues)
		}
		reported, ok := i.LastKnown("w1")
		if !ok || reported.Pool != "prefork" || reported.Slots == nil || *reported.Slots != 2 || !slices.Equal(reported.Queues, []string{"celery"}) || at.Sub(reported.At).Abs() > time.Second {
			t.Errorf("it has told %+v, %t, want its pool and queue as of a day ago", reported, ok)
		}
		if i.Forget("w1"); ok {
			if _, ok = i.LastKnown("w1"); ok {
				t.Error("a forgotten worker still has queues")
			}
		}
	})
}
