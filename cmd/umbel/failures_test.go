package main_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
)

// failure is a group of failures of the API, as far as the tests look at it.
type failure struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Message string `json:"message"`
	Count   int    `json:"count"`
}

func TestEndToEndFailuresAreGrouped(t *testing.T) {
	t.Parallel()
	c := newCluster(t, testenv.VirtualHost(t))
	c.work(t, "fork@test", "celery", "-P", "prefork", "-c", "2", "-E")
	d := start(t, c.env, "serve")
	d.connected(t)
	for i := range 3 {
		c.call(t, "boom", fmt.Sprintf("order %d is 'lost'", 4711+i))
	}
	c.call(t, "boom", "no such order")
	c.do(t, clientCall{Call: "hold", Args: []any{"/nowhere"}, Options: map[string]any{"time_limit": 1}})
	for range 2 {
		c.do(t, clientCall{Call: "flaky", Args: []any{1, 0}}) // ends well
	}
	want := map[failure]bool{
		{"tasks.boom", "ValueError", "order <n> is <text>", 3}: true,
		{"tasks.boom", "ValueError", "no such order", 1}:       true,
		{"tasks.hold", "TimeLimitExceeded", "<n>", 1}:          true,
	}
	eventually(t, timeout, func() error {
		page, ok := api[list[failure]](t, d, "failures")
		if !ok {
			return errUnknown
		}
		got := map[failure]bool{}
		for _, f := range page.Items {
			got[f] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("groups (-want +got):\n%s", diff)
		}
		return nil
	})
}
