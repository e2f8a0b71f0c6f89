package remote_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/remote"
)

func TestListenTellsRepliesAsTheyComeIn(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "w1", says(pong, 10*ms))
		f.add(t, "w2", says(pong, 50*ms))
		f.add(t, "w3", mute)
		c := newClient(t, f)
		run(t, c.Run)
		began := time.Now()
		v, err := c.Send(t.Context(), remote.Request{Method: "ping", Expect: []string{"w1", "w2", "w3"}, Timeout: time.Second})
		if err != nil {
			t.Fatalf("send: %v", err)
		}
		heard := make(map[string]time.Duration)
		a := v.WaitEach(t.Context(), func(replies []remote.Reply) {
			for _, r := range replies {
				if _, again := heard[r.Node]; again {
					t.Errorf("%s was heard twice", r.Node)
				}
				heard[r.Node] = time.Since(began)
			}
		})
		if diff := cmp.Diff(map[string]time.Duration{"w1": 10 * ms, "w2": 50 * ms}, heard); diff != "" {
			t.Errorf("heard (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"w3"}, a.Missing); diff != "" || a.Elapsed != time.Second || len(a.Items) != 2 {
			t.Errorf("after %v with %d replies, missing (-want +got):\n%s", a.Elapsed, len(a.Items), diff)
		}
	})
}
