package state_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/state"
)

// BenchmarkTypicalText reports what a task of a simulated shop takes with all its text, failures with their tracebacks among them.
func BenchmarkTypicalText(b *testing.B) {
	const tasks = 100_000
	for range b.N {
		source, err := simulate.New(simulate.Options{Seed: 1, Start: time.Unix(1_790_000_000, 0), Rate: 2000})
		if err != nil {
			b.Fatal(err)
		}
		var d celery.Decoder
		c := state.New(state.Options{MaxText: 4 << 30})
		before := heap()
		for len(c.Tasks(state.Query{Limit: 1}).Tasks) == 0 || *c.Tasks(state.Query{Limit: 1}).Total < tasks {
			for range 1000 {
				m, ok := source.Next()
				if !ok {
					b.Fatal("the simulation has ended")
				}
				body, ok := d.JSON(m.ContentType, m.Body)
				if !ok {
					continue
				}
				d.Decode(body, m.At.UnixMicro(), func(e *state.Event) { c.Apply(e) })
			}
		}
		b.ReportMetric(float64(heap()-before)/tasks, "B/task")
		runtime.KeepAlive(source)
		runtime.KeepAlive(c)
	}
}
