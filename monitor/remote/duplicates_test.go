package remote_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/remote"
)

func TestLateDuplicatesAreReported(t *testing.T) {
	t.Parallel()
	in(t, func(t *testing.T) {
		f := newFleet(t)
		f.add(t, "twin", says(pong, 10*ms))
		f.add(t, "twin", says(pong, 60*ms))
		f.add(t, "alone", says(pong, 10*ms))
		f.add(t, "late", says(pong, 3*time.Second))
		c := newClient(t, f)
		run(t, c.Run)
		for n := range 300 { // more than are kept
			a, err := c.Call(t.Context(), remote.Request{Method: "ping", Destination: []string{"twin"}})
			if err != nil || len(a.Items) != 1 || a.Items[0].Duplicate {
				t.Fatalf("answers %d = %+v, error %v, want the first", n, a, err)
			}
			if n == 0 {
				if got := c.Duplicates(); len(got) != 0 {
					t.Errorf("duplicates before the second reply = %v", got)
				}
				<-time.After(time.Minute)
				if diff := cmp.Diff([]string{"twin"}, c.Duplicates()); diff != "" {
					t.Errorf("duplicates (-want +got):\n%s", diff)
				}
				<-time.After(5 * time.Minute)
				if got := c.Duplicates(); len(got) != 0 {
					t.Errorf("duplicates 6 minutes later = %v", got)
				}
			}
		}
		if _, err := c.Call(t.Context(), remote.Request{Method: "ping", Expect: []string{"alone", "late"}}); err != nil {
			t.Fatalf("ask: %v", err)
		}
		<-time.After(3 * time.Second)
		if diff := cmp.Diff([]string{"twin"}, c.Duplicates()); diff != "" {
			t.Errorf("duplicates (-want +got):\n%s", diff)
		}
	})
}
