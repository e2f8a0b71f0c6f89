package monitor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor"
	"github.com/umbelhq/umbel/monitor/transport/memory"
	"github.com/umbelhq/umbel/state"
)

// TestTextThatMemoryHasDroppedIsRead gives memory room for 2 MiB of text.
func TestTextThatMemoryHasDroppedIsRead(t *testing.T) {
	t.Parallel()
	b := memory.New(memory.Options{})
	m := run(t, monitor.Options{Broker: b, Store: memoryStore(t), State: state.Options{MaxText: 1}})
	const big = `{"type":"task-succeeded","hostname":"w1","pid":7,"clock":%d,"timestamp":1790000001,"uuid":"t%d","result":"%s"}`
	publish(t, b, fmt.Appendf(nil, big, 1, 0, "first"))
	saved(t, m, 1)
	for i := 1; i < 50; i++ {
		publish(t, b, fmt.Appendf(nil, big, i+1, i, strings.Repeat("x", 60_000)))
	}
	saved(t, m, 50)
	m.View(func(c *state.Cluster) {
		if held, _ := c.Task("t0"); !held.Truncated || held.Result != nil {
			t.Errorf("memory holds result %v, truncated %v; want it dropped", held.Result, held.Truncated)
		}
	})
	got, err := m.Task(t.Context(), "t0")
	if err != nil || got.Truncated || got.Result == nil || *got.Result != "first" {
		t.Errorf("result %v, truncated %v, error %v; want all of it", got.Result, got.Truncated, err)
	}
}
