package remote_test

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

// A worker that has come up is asked at once, so that nobody is told that it has nothing.
func TestTopologyAsksNewcomers(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", tells(idle()))
		f.add(t, "w2", tells(idle()))
		c := newClient(t, f)
		run(t, c.Run)
		alive := []string{"w1"}
		i, err := remote.NewInspector(remote.InspectorOptions{Client: c, Alive: func() []string { return alive }})
		if err != nil {
			t.Fatalf("new inspector: %v", err)
		}
		for range 2 {
			i.Topology(t.Context())
		}
		if n := heardOf(f)["active_queues"]; n != 2 { // by two workers
			t.Errorf("queues were asked for %d times, want once each", n)
		}
		alive = []string{"w1", "w2"}
		for range 2 {
			if got := i.Topology(t.Context()); !slices.Equal(got.Expected, alive) || len(got.Missing) > 0 {
				t.Errorf("asked %v, missing %v, want both workers asked", got.Expected, got.Missing)
			}
		}
		if n := heardOf(f)["active_queues"]; n != 4 {
			t.Errorf("queues were asked for %d times, want once more each", n)
		}
	})
}

func TestTopologyTellsPools(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		two := idle()
		two["stats"] = `{"pool":{"implementation":"celery.concurrency.prefork:TaskPool","max-concurrency":2,"processes":[1,2,3]}}`
		f.add(t, "w1", tells(map[string]string{"registered": `[]`, "active_queues": `[]`}))
		f.add(t, "w2", tells(two))
		i := inspector(t, f, "w1", "w2")
		pools := i.Topology(t.Context()).Pools
		if diff := cmp.Diff([]string{"w2"}, slices.Collect(maps.Keys(pools))); diff != "" {
			t.Fatalf("workers whose pools are known (-want +got):\n%s", diff)
		}
		if got := pools["w2"]; got.Kind != "prefork" || got.Slots == nil || *got.Slots != 3 {
			t.Errorf("pool = %+v, want prefork with 3 slots", got)
		}
	})
}

func TestLastAsksNobody(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", tells(idle()))
		i := inspector(t, f, "w1")
		if got := i.Peek("w1"); got.Node != "w1" || !got.At.IsZero() {
			t.Errorf("last = %+v, want nothing of w1", got)
		}
		i.Inspect(t.Context(), "w1")
		heard := len(f.requests())
		if got := i.Peek("w1"); got.Stats == nil || len(f.requests()) != heard {
			t.Errorf("last = %+v after %d more requests, want what it told and none", got, len(f.requests())-heard)
		}
	})
}

// Who looks now and then has workers asked once, and not again for a while.
func TestPeekTopologyRefreshesOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		look func(i *remote.Inspector) remote.Topology
		want int
	}{
		"glance": {(*remote.Inspector).PeekTopology, 1},
		"known":  {(*remote.Inspector).CachedTopology, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(t *testing.T) {
				f := newFleet(t)
				f.add(t, "w1", tells(idle()))
				i := inspector(t, f, "w1")
				for range 3 { // three looks within the same 5 s are one
					test.look(i)
					<-time.After(time.Second)
				}
				<-time.After(25 * time.Second)
				if n := heardOf(f)["active_queues"]; n != test.want {
					t.Errorf("queues were asked for %d times, want %d", n, test.want)
				}
				before := heardOf(f)["active_queues"]
				test.look(i)
				<-time.After(time.Second)
				if n := heardOf(f)["active_queues"]; n != before+1 {
					t.Errorf("queues were asked for %d times after another look, want %d", n, before+1)
				}
			})
		})
	}
}

// Who could not be asked since there was no control connection is asked as soon as there is one.
func TestTopologyIsRefreshedOnceConnected(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", tells(idle()))
		f.Refuse(errors.New("away"))
		i := inspector(t, f, "w1")
		if got := i.Topology(t.Context()); !slices.Equal(got.Missing, []string{"w1"}) {
			t.Errorf("missing %v without a connection, want w1", got.Missing)
		}
		f.Refuse(nil)
		<-time.After(4 * time.Second) // the control connection is open by then, and what was told is still fresh
		if got := i.Topology(t.Context()); len(got.Missing) > 0 {
			t.Errorf("missing %v with a connection, want none", got.Missing)
		}
	})
}

func TestTopology(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		one := map[string]string{"registered": `["a [rate_limit=1/m]","b"]`, "active_queues": `[{"name":"q"},{"name":"r"},{"name":"q"}]`}
		two := map[string]string{"registered": `["b"]`, "active_queues": `[{"name":"q"}]`}
		f.add(t, "w2", func(r request) []answer { return tells(two)(r) })
		f.add(t, "w1", func(r request) []answer { return tells(one)(r) })
		i := inspector(t, f, "w2", "w1", "w3", "w1")
		check := func(when string, got remote.Topology, tasks, queues map[string][]string, missing []string) {
			t.Helper()
			if diff := cmp.Diff(tasks, got.Tasks); diff != "" {
				t.Errorf("%s: tasks (-want +got):\n%s", when, diff)
			}
			if diff := cmp.Diff(queues, got.Queues); diff != "" {
				t.Errorf("%s: queues (-want +got):\n%s", when, diff)
			}
			if diff := cmp.Diff(missing, got.Missing); diff != "" {
				t.Errorf("%s: missing (-want +got):\n%s", when, diff)
			}
		}
		both := []string{"w1", "w2"}
		tasks := map[string][]string{"a": {"w1"}, "b": both}
		queues := map[string][]string{"q": both, "r": {"w1"}}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { check("first", i.Topology(t.Context()), tasks, queues, []string{"w3"}) })
		}
		all.Wait()
		// w3 has just come up and may not have heard the first rounds.
		if n := len(f.requests()); n > 4*6 {
			t.Errorf("workers heard %d requests, want 12 each at most", n)
		}
		two = nil
		<-time.After(remote.MaxAge)
		got := i.Topology(t.Context())
		check("w2 is mute", got, tasks, queues, []string{"w2", "w3"})
		if diff := cmp.Diff([]string{"w1", "w2", "w3"}, got.Expected); diff != "" {
			t.Errorf("asked (-want +got):\n%s", diff)
		}
		one = map[string]string{"registered": `[]`, "active_queues": `[]`}
		<-time.After(remote.MaxAge)
		check("w1 has nothing", i.Topology(t.Context()),
			map[string][]string{"b": {"w2"}}, map[string][]string{"q": {"w2"}}, []string{"w2", "w3"})
	})
}

func TestKnownDoesNotWait(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", tells(idle()))
		i := inspector(t, f, "w1")
		changed := i.Changed()
		if got := i.CachedTopology(); !got.At.IsZero() || got.Queues != nil {
			t.Errorf("known at first = %+v, want nothing", got)
		}
		<-changed
		if diff := cmp.Diff(map[string][]string{"celery": {"w1"}}, i.CachedTopology().Queues); diff != "" {
			t.Errorf("queues (-want +got):\n%s", diff)
		}
		<-time.After(time.Minute)
		if n := heardOf(f)["registered"]; n != 4 {
			t.Errorf("asked %d times, want 4: nobody looked any longer", n)
		}
	})
}

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
