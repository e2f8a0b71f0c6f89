package remote_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/remote"
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
