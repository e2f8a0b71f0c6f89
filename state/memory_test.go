package state_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
)

// TestNothingHoldsMessageBodies folds events whose short strings share memory with long bodies. It measures the
// heap, so nothing may run beside it.
func TestNothingHoldsMessageBodies(t *testing.T) {
	const messages, size = 100, 1 << 17
	padding := strings.Repeat("x", size)
	c := state.New(state.Options{})
	var d celery.Decoder
	before := heap()
	for i := range messages {
		for _, kind := range []string{"task-sent", "task-received", "task-progress", "worker-online", "worker-offline"} {
			body := fmt.Appendf(nil, `{"type":"%s","hostname":"worker-%d","pid":%d,"clock":%d,"timestamp":1790000000,"uuid":"task %d","name":"n%d",`+
				`"queue":"q%d","root_id":"r%d","parent_id":"p%d","args":"a","sw_ver":"v%d","padding":"%s"}`, kind, i, i, i+1, i, i, i, i, i, i, padding)
			d.Decode(body, 1, func(e *state.Event) {
				e.Extra = nil
				c.Apply(e)
			})
		}
	}
	if grown := heap() - before; grown > messages*size/10 {
		t.Errorf("%d messages of %d bytes left %d bytes on the heap", messages*5, size, grown)
	}
	runtime.KeepAlive(c)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestFinishedTasksAreSmall measures what a finished task of four events takes without its text.
func TestFinishedTasksAreSmall(t *testing.T) {
	const tasks, most = 100_000, 220
	before := heap()
	c := filled(tasks)
	per := float64(heap()-before) / tasks
	t.Logf("%.1f bytes a task", per)
	if per > most {
		t.Errorf("a finished task takes %.1f bytes, at most %d are allowed", per, most)
	}
	runtime.KeepAlive(c)
}
