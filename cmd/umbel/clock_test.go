package main_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
)

// TestEndToEndClocks has a worker whose wall clock is an hour ahead, and one whose clock is an hour behind.
func TestEndToEndClocks(t *testing.T) {
	t.Parallel()
	for name, newBroker := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watchClocks(t, newBroker(t))
		})
	}
}

func watchClocks(t *testing.T, broker string) {
	t.Helper()
	c := newCluster(t, broker)
	d := start(t, c.env, "serve")
	d.connected(t)
	right := c.env
	for node, shift := range map[string]int{"ahead": 3600, "behind": -3600} {
		c.env = slices.Concat(right, []string{
			"LD_PRELOAD=" + testenv.FakeTime(t), fmt.Sprintf("FAKETIME=%+d", shift), "FAKETIME_DONT_FAKE_MONOTONIC=1",
		})
		c.work(t, node+"@test", node, "-P", "solo", "-E")
	}
	for node, off := range map[string]struct {
		seconds float64
		words   string
	}{"ahead": {3600, "1\u202fh ahead"}, "behind": {-3600, "1\u202fh behind"}} {
		d.worker(t, node+"@test", func(w worker) error {
			if w.Status != "online" || w.ClockOffset == nil || math.Abs(*w.ClockOffset-off.seconds) > 1 {
				return fmt.Errorf("worker %s is %s with an offset of %v s, want online and %v", w.Name, w.Status, seconds(w.ClockOffset), off.seconds)
			}
			return nil
		})
		if _, page := d.fetch(t, "workers/"+node+"@test?tab=clock"); !strings.Contains(string(page), off.words) {
			t.Errorf("the page of %s does not say %q", node, off.words)
		}
		id := c.do(t, clientCall{Call: "add", Args: []any{2, 3}, Options: map[string]any{"queue": node}})[0]
		if got := d.inState(t, id, "SUCCESS"); got.WaitSeconds != nil {
			t.Errorf("wait of a task on %s = %v s, want it unknown", node, *got.WaitSeconds)
		}
		eventually(t, timeout, func() error {
			o, _ := api[struct {
				Rates struct {
					Succeeded float64 `json:"succeeded"`
				} `json:"rates"`
			}](t, d, "overview")
			if o.Rates.Succeeded <= 0 {
				return fmt.Errorf("no task succeeds while one on %s does", node)
			}
			return nil
		})
	}
}

// seconds writes a number that may be unknown.
func seconds(n *float64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}
