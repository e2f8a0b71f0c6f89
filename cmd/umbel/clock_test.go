package main_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
)

// TestEndToEndClocks has a worker whose wall clock is an hour ahead, and one whose clock is an hour behind. What Umbel says of
// them contains that exactly, however slow the machine is; only in thorough tests does it have to be narrow.
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
			switch low, high := w.OffsetLow, w.OffsetHigh; {
			case w.Status != "online" || low == nil || high == nil:
				return fmt.Errorf("worker %s is %s, %s to %s s ahead, want online with both bounds", w.Name, w.Status, seconds(low), seconds(high))
			case *low > off.seconds || *high < off.seconds:
				t.Errorf("worker %s is %v to %v s ahead, and truly %v", w.Name, *low, *high, off.seconds)
			case testenv.Thorough() && (off.seconds-*low > 0.05 || *high-off.seconds > 0.05):
				return fmt.Errorf("worker %s is %v to %v s ahead, want within 50 ms of %v", w.Name, *low, *high, off.seconds)
			}
			return nil
		})
		if _, page := d.fetch(t, "workers/"+node+"@test?tab=clock"); !strings.Contains(string(page), off.words) {
			t.Errorf("the page of %s does not say %q", node, off.words)
		}
		asked := time.Now()
		id := c.do(t, clientCall{Call: "add", Args: []any{2, 3}, Options: map[string]any{"queue": node}})[0]
		got := d.inState(t, id, "SUCCESS")
		took := time.Since(asked).Seconds()
		if got.WaitSeconds == nil || *got.WaitSeconds < 0 || *got.WaitSeconds > took+2 {
			t.Errorf("wait of a task on %s = %s s, want at most %v", node, seconds(got.WaitSeconds), took)
		}
		if got.WaitRaw == nil || math.Abs(*got.WaitRaw-off.seconds) > took+2 {
			t.Errorf("wait of a task on %s by the times sent = %s s, want about %v", node, seconds(got.WaitRaw), off.seconds)
		}
		if got.WaitLow != nil && *got.WaitLow > took {
			t.Errorf("a task on %s waited at least %v s, and it took %v altogether", node, *got.WaitLow, took)
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
