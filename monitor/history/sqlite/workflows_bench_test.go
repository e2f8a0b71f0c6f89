package sqlite_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

// BenchmarkWorkflows reads pages of 50 of the 200,000 workflows of a million tasks.
func BenchmarkWorkflows(b *testing.B) {
	d, dir := benchHistory(b)
	readAll(b, dir)
	const name = "billing.charge_0"
	for title, r := range map[string]history.WorkflowRequest{
		"newest": {}, "middle": {Before: 100_000}, "name": {Name: name},
		"running": {Status: workflow.Running}, "failed": {Status: workflow.Failed}, "lost": {Status: workflow.Lost}, "succeeded": {Status: workflow.Succeeded},
		"name-running": {Name: name, Status: workflow.Running}, "name-failed": {Name: name, Status: workflow.Failed}, "name-lost": {Name: name, Status: workflow.Lost},
	} {
		b.Run(title, func(b *testing.B) {
			r.Limit = 50
			latency(b, func(_ int, timed func(func())) {
				timed(func() {
					if _, err := d.Workflows(b.Context(), r); err != nil {
						b.Fatal(err)
					}
				})
			})
		})
	}
}

// BenchmarkWorkflowCounts writes the same tasks with and without counting workflows, in turns: new ones, and the same again when
// they have ended.
func BenchmarkWorkflowCounts(b *testing.B) {
	with, without := openBench(b, b.TempDir()), openBench(b, b.TempDir())
	without.Uncount()
	c := state.New(state.Options{Track: true})
	var ratios []float64
	var slow, fast time.Duration
	for n := 0; b.Loop(); n++ {
		var ends []*state.Event
		for i := n * 1000; i < (n+1)*1000; i++ {
			events := benchTasks.Events(i)
			for _, e := range events[:3] {
				c.Apply(e)
			}
			ends = append(ends, events[3:]...)
		}
		a, z := turn(b, c, with, without, n)
		for _, e := range ends {
			c.Apply(e)
		}
		a2, z2 := turn(b, c, with, without, n)
		slow, fast = slow+a+a2, fast+z+z2
		ratios = append(ratios, float64(a+a2)/float64(z+z2))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "with/without")
	b.ReportMetric(float64(slow.Microseconds())/float64(b.N)/1000, "with-ms")
	b.ReportMetric(float64(fast.Microseconds())/float64(b.N)/1000, "without-ms")
	b.ReportMetric(0, "ns/op")
}

// turn writes what is not saved to both, in the order that n decides, and returns the processor time of each.
func turn(b *testing.B, c *state.Cluster, with, without *sqlite.DB, n int) (slow, fast time.Duration) {
	b.Helper()
	var batch history.Batch
	for _, u := range c.TakeUnsaved(c.Unsaved()) {
		batch.Tasks = append(batch.Tasks, history.Task(u))
	}
	write := func(d *sqlite.DB) time.Duration {
		begin := processorTime(b)
		if _, err := d.Write(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		return processorTime(b) - begin
	}
	if n%2 == 0 {
		slow = write(with)
		fast = write(without)
	} else {
		fast = write(without)
		slow = write(with)
	}
	if err := c.Saved(true, nil); err != nil {
		b.Fatal(err)
	}
	return slow, fast
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
