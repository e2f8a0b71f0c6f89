package state_test

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel/state"
)

const million = 1_000_000

// filled returns a cluster of n finished tasks of four events each, a thousandth of them failed.
// Its text is all but dropped, so that what is left is the tasks themselves.
func filled(n int) *state.Cluster {
	c := state.New(state.Options{MaxTasks: n, MaxText: 1})
	fill(c, n)
	return c
}

// fill applies the events of n tasks.
func fill(c *state.Cluster, n int) {
	for i := range n {
		id := fmt.Sprintf("%08x-6f61-4a64-9e1f-%012x", uint32(i)*2654435761, i)
		worker, name := fmt.Sprintf("celery@web-%d", i%8), fmt.Sprintf("shop.tasks.task_%d", i%40)
		end := state.TaskSucceeded
		if i%1000 == 0 {
			end = state.TaskFailed
		}
		for k, kind := range []state.Kind{state.TaskSent, state.TaskReceived, state.TaskStarted, end} {
			e := state.Event{
				Kind: kind, ID: id, Hostname: worker, PID: 100 + int64(i%8), Clock: int64(i*4 + k + 1),
				Micros: 1795222153963517 + int64(i*4+k), ReceivedMicros: 1795222153963517 + int64(i*4+k),
			}
			if kind == state.TaskSent {
				e.Hostname, e.Queue, e.Present = "gen4711@web", "celery", state.FieldQueue
			}
			if kind == state.TaskSent || kind == state.TaskReceived {
				e.Name, e.Args, e.Kwargs, e.RootID = name, "(1, 2)", "{}", id
				e.Present |= state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldRootID
			}
			c.Apply(&e)
		}
	}
}

// BenchmarkMillionTasks reports what a million finished tasks cost: heap without text, a full garbage
// collection, and pages of 50.
func BenchmarkMillionTasks(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := filled(million)
	debug.FreeOSMemory()
	runtime.ReadMemStats(&after)
	perTask := float64(after.HeapAlloc-before.HeapAlloc) / million

	b.Run("heap", func(b *testing.B) {
		for range b.N {
			runtime.KeepAlive(c)
		}
		b.ReportMetric(perTask, "B/task")
	})
	b.Run("gc", func(b *testing.B) {
		for range b.N {
			runtime.GC()
		}
		runtime.KeepAlive(c)
	})
	middle := c.Tasks(state.Query{Limit: 500}).Older
	for range 1000 {
		middle = c.Tasks(state.Query{Limit: 500, From: middle}).Older
	}
	for name, q := range map[string]state.Query{
		"newest":       {},
		"from_middle":  {From: middle},
		"by_state":     {States: []state.State{state.Failure}},
		"by_name":      {Names: []string{"shop.tasks.task_7"}},
		"rare_of_name": {States: []state.State{state.Failure}, Names: []string{"shop.tasks.task_7"}},
		"text":         {Text: "nowhere to be found"},
		"nothing":      {States: []state.State{state.Failure}, Workers: []string{"celery@web-7"}},
	} {
		b.Run("page/"+name, func(b *testing.B) {
			took := make([]time.Duration, 0, b.N)
			for range b.N {
				start := time.Now()
				c.Tasks(q)
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkFullOfActiveTasks adds tasks to a cluster that is full of others, none of them finished.
func BenchmarkFullOfActiveTasks(b *testing.B) {
	const room = 100_000
	c := state.New(state.Options{MaxTasks: room})
	for i := range room + b.N {
		if i == room {
			b.ResetTimer()
		}
		c.Apply(&state.Event{Kind: state.TaskReceived, ID: fmt.Sprint("t", i), Hostname: "w1", PID: 10, Clock: int64(i + 1), Micros: t0 + int64(i)})
	}
}

// BenchmarkEqualClocks adds tasks that all have the same repaired clock: they are late, and say that they are first.
func BenchmarkEqualClocks(b *testing.B) {
	c := state.New(state.Options{})
	c.Apply(&state.Event{Kind: state.TaskReceived, ID: "newest", Hostname: "w1", PID: 10, Clock: 2, Micros: t0})
	for i := range 100_000 + b.N {
		if i == 100_000 {
			b.ResetTimer()
		}
		c.Apply(&state.Event{Kind: state.TaskReceived, ID: fmt.Sprint("t", i), Hostname: "w1", PID: 10, Clock: 1, Micros: t0 - 1e12 + int64(i)})
	}
}

// BenchmarkSave takes finished tasks of four events to be saved, and loads them again, per task.
func BenchmarkSave(b *testing.B) {
	c := state.New(state.Options{Track: true})
	fill(c, b.N)
	saved := make([]state.Unsaved, 0, b.N)
	size := 0
	b.ResetTimer()
	for c.Unsaved() > 0 {
		for _, u := range c.TakeUnsaved(1000) {
			size += len(u.Events)
			saved = append(saved, u)
		}
		if err := c.Saved(true, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(size)/float64(b.N), "B/task")
	start := time.Now()
	other := state.New(state.Options{})
	for _, u := range saved {
		if err := other.Load(u.View.ID, u.Events); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N), "load-ns/task")
}

// BenchmarkAppendEvent writes an event to a journal.
func BenchmarkAppendEvent(b *testing.B) {
	e := ev(state.TaskReceived, "3f2a0c1e-6f61-4a64-9e1f-000000000000", "celery@web-1", 10, 1)
	e.Kwargs, e.RootID = "{'order': 51183}", e.ID
	e.Present |= state.FieldKwargs | state.FieldRootID
	var journal []byte
	b.ReportAllocs()
	for b.Loop() {
		journal = state.AppendEvent(journal[:0], &e, 1<<30)
	}
}
