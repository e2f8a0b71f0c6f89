package ingest_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/state"
)

func TestMemoryIsSharedBelowTheLimit(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	full := state.Footprint{Count: 100_000, Tasks: 30 * mib, Text: 20 * mib}
	for name, tc := range map[string]struct {
		held           state.Footprint
		limit, rest    int64
		reduced        bool
		least, most    int
		leastText, end int64
	}{
		"no limit":           {full, math.MaxInt64, 10 * mib, false, 200_000, 200_000, 512 * mib, 512 * mib},
		"far away":           {full, 10_000 * mib, 10 * mib, false, 200_000, 200_000, 512 * mib, 512 * mib},
		"near":               {full, 200 * mib, 40 * mib, true, 200_000, 200_000, 49 * mib, 50 * mib},
		"nearer":             {full, 90 * mib, 13 * mib, true, 85_000, 110_000, 24 * mib, 25 * mib},
		"at the start":       {state.Footprint{Count: 1}, 100 * mib, 10 * mib, true, 200_000, 200_000, 29 * mib, 30 * mib},
		"taken by the rest":  {full, 90 * mib, 90 * mib, true, 1000, 1000, 2 * mib, 2 * mib},
		"text takes it all":  {state.Footprint{Count: 100_000, Tasks: 30 * mib, Text: 400 * mib}, 100 * mib, 10 * mib, true, 85_000, 110_000, 29 * mib, 30 * mib},
		"the limit is a bit": {full, 1, 10 * mib, true, 1000, 1000, 2 * mib, 2 * mib},
	} {
		h, tasks, text := ingest.MemoryLimits(tc.held, 200_000, 512*mib, tc.limit, tc.rest)
		if h.Reduced != tc.reduced || tasks < tc.least || tasks > tc.most || text < tc.leastText || text > tc.end || h.MaxTasks != tasks || h.MaxText != text {
			t.Errorf("%s: %d tasks and %d MiB of text, %+v", name, tasks, text/mib, h)
		}
	}
}

// unstoring is a store that takes no tasks, so that the test is fast.
type unstoring struct{ history.Store }

func (unstoring) Write(context.Context, history.Batch) (history.WriteResult, error) {
	return history.WriteResult{}, nil
}

const memoryChild = "UMBEL_TEST_MEMORY_CHILD"

// TestMemoryStaysBelowTheLimit starts another process with a GOMEMLIMIT that does not suffice for the tasks that it receives.
func TestMemoryStaysBelowTheLimit(t *testing.T) {
	if os.Getenv(memoryChild) != "" {
		receiveMoreThanFits(t)
		return
	}
	t.Parallel()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryStaysBelowTheLimit$", "-test.v", "-test.timeout=9m")
	c.Env = append(os.Environ(), memoryChild+"=1", "GOMEMLIMIT=64MiB", "GOGC=100")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "bytes at most") {
		t.Errorf("%v\n%s", err, out)
	}
}

func receiveMoreThanFits(t *testing.T) {
	const count, batch, text = 120_000, 1000, 300
	limit := debug.SetMemoryLimit(-1)
	b := inproc.New(inproc.Options{})
	m := start(t, b, func(o *ingest.Options) { o.Store = unstoring{memoryStore(t)} })
	most := int64(0)
	for n := 0; n < count; n += batch {
		var bodies [][]byte
		for i := n; i < n+batch; i++ {
			id := fmt.Sprintf("%08x-6f61-4a64-9e1f-%012x", i, i)
			padding := strings.Repeat(fmt.Sprint(i), text/6)
			bodies = append(bodies, fmt.Appendf(nil, `{"type":"task-received","hostname":"w1","pid":7,"clock":%d,"timestamp":%d,"uuid":"%s","name":"n","args":"%s"}`, 2*i+1, 1790000000+i, id, padding),
				fmt.Appendf(nil, `{"type":"task-succeeded","hostname":"w1","pid":7,"clock":%d,"timestamp":%d,"uuid":"%s","result":"%s"}`, 2*i+2, 1790000000+i, id, padding))
		}
		publish(t, b, bodies...)
		await(t, m, "the events", func() bool { return m.Health().Events == uint64(2*(n+batch)) })
		await(t, m, "the tasks to be saved", func() bool { return m.Health().Store.UnsavedTasks < batch })
		most = max(most, memoryInUse())
	}
	h := m.Health().Memory
	await(t, m, "lower limits", func() bool { h = m.Health().Memory; return h.Reduced })
	t.Logf("%d of %d bytes at most, %+v", most, limit, h)
	if held := tasks(m); held >= count || held < 1000 {
		t.Errorf("%d of %d tasks are held, want some and not all", held, count)
	}
	if most > limit {
		t.Errorf("%d bytes in use, the limit is %d", most, limit)
	}
}

// memoryInUse is what GOMEMLIMIT limits.
func memoryInUse() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
