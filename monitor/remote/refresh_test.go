package remote_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
)

// What a worker has replied of queues counts at once, though it acts later and tells meanwhile what was.
func TestAcknowledgedCommandsCountAtOnce(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		var acted atomic.Bool
		f.add(t, "w1", func(r request) []answer {
			v := idle()
			if acted.Load() {
				v["active_queues"] = `[{"name":"mail"}]`
			}
			return tells(v)(r)
		})
		i := inspector(t, f, "w1")
		check := func(when, queue string, want bool) {
			t.Helper()
			for name, got := range map[string]remote.Topology{"asked": i.Topology(t.Context()), "known": i.CachedTopology()} {
				if consumes := slices.Contains(got.Queues[queue], "w1"); consumes != want {
					t.Errorf("%s, %s: w1 consumes from %s: %v", when, name, queue, consumes)
				}
			}
		}
		check("at first", "celery", true)
		check("at first", "mail", false)
		i.Acknowledged("w1", "add_consumer", map[string]any{"queue": "mail"})
		i.Acknowledged("w1", "cancel_consumer", map[string]any{"queue": "celery"})
		check("once answered", "mail", true)
		check("once answered", "celery", false)
		<-time.After(time.Second)
		check("a second later", "mail", true)
		check("a second later", "celery", false)
		acted.Store(true)
		<-time.After(2 * remote.MaxAge)
		check("in the end", "mail", true)
		check("in the end", "celery", false)
		acted.Store(false)
		<-time.After(2 * remote.MaxAge)
		check("if it has not done it", "mail", false)
		check("if it has not done it", "celery", true)
	})
}

func TestAcknowledgedCommandsRefreshTheWorker(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		var grown atomic.Bool
		f.add(t, "w1", func(r request) []answer {
			v := idle()
			v["stats"] = `{"pool":{"implementation":"celery.concurrency.prefork:TaskPool","processes":[1]}}`
			if grown.Load() {
				v["stats"] = `{"pool":{"implementation":"celery.concurrency.prefork:TaskPool","processes":[1,2]}}`
			}
			return tells(v)(r)
		})
		i := inspector(t, f, "w1")
		i.Inspect(t.Context(), "w1")
		i.Topology(t.Context())
		<-time.After(time.Second)
		grown.Store(true)
		i.Acknowledged("w1", "pool_grow", nil)
		if n := len(i.Topology(t.Context()).Pools["w1"].Processes); n != 2 {
			t.Errorf("topology has %d processes, want 2", n)
		}
		<-time.After(100 * ms)
		if n := len(i.Peek("w1").Stats.Pool.Processes); n != 2 {
			t.Errorf("the worker has %d processes, want 2", n)
		}
		heard := heardOf(f)["conf"]
		for range 100 { // a burst of replies
			i.Acknowledged("w1", "rate_limit", nil)
			<-time.After(10 * ms)
		}
		if n := heardOf(f)["conf"] - heard; n < 2 || n > 5 {
			t.Errorf("the worker was asked %d times in the second of a burst, want 2 to 5", n)
		}
		i.Acknowledged("w2", "pool_grow", nil)
		if got := i.Peek("w2"); !got.At.IsZero() || got.Refreshing {
			t.Errorf("a worker that nobody looks at is asked: %+v", got)
		}
	})
}

// A worker is online some time before it hears. What it has is known soon all the same.
func TestNewcomersAreAskedUntilTheyHear(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		var hears atomic.Bool
		f.add(t, "w1", func(r request) []answer {
			if !hears.Load() {
				return nil
			}
			return tells(idle())(r)
		})
		i := inspector(t, f, "w1", "dead")
		time.AfterFunc(1200*ms, func() { hears.Store(true) })
		began := time.Now()
		got := i.Topology(t.Context())
		if took := time.Since(began); len(got.Queues["celery"]) != 1 || took > remote.MaxAge {
			t.Errorf("queues after %v = %v, want those of w1", took, got.Queues)
		}
		i.Topology(t.Context())
		rounds := heardOf(f)["active_queues"]
		<-time.After(time.Second)
		began = time.Now()
		i.Topology(t.Context())
		if n := heardOf(f)["active_queues"] - rounds; n > 1 || time.Since(began) > 3*time.Second {
			t.Errorf("asked %d times more in %v for one that never answers", n, time.Since(began))
		}
	})
}
