package causality_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/umbelhq/umbel/state"
)

// BenchmarkKeptVectors measures what it would take to keep the past of every event as it arrives: the last event of each
// process that is before it. Events of a process that has heard nothing share one vector. Half of the tasks are sent by a
// client, half by the child process of a worker that runs another task. full-B and change-B are bytes an event, with whole
// vectors of 8 bytes an entry, and with only the 12 bytes of each entry that changed; fold-ratio is the time over that of
// the fold of the same events. The decision not to keep them refers to it.
func BenchmarkKeptVectors(b *testing.B) {
	for _, workers := range []int{100, 1_000} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			tasks := 40 * workers
			var full, changed, events int
			var merging, folding time.Duration
			for b.Loop() {
				full, changed, events = 0, 0, 0
				rng := rand.New(rand.NewPCG(1, 1))
				c := state.New(state.Options{})
				last := make([][]int64, 2*workers) // of workers, then of their children
				for i := range last {
					last[i] = make([]int64, 2*workers)
				}
				merge := func(to, from int) {
					began := time.Now()
					v := append([]int64(nil), last[to]...)
					for i, at := range last[from] {
						if at > v[i] {
							v[i] = at
							changed += 12
						}
					}
					last[to] = v
					full += 8 * len(v)
					merging += time.Since(began)
				}
				apply := func(kind state.Kind, process, task int) {
					began := time.Now()
					events++
					last[process][process]++
					c.Apply(&state.Event{
						Kind: kind, ID: fmt.Sprintf("00000000-0000-4000-8000-%012d", task), Hostname: fmt.Sprint("celery@", process), PID: 1,
						Clock: int64(events), Micros: 1_790_000_000_000_000 + int64(events)*1_000, Name: "t",
						Present: state.FieldClock | state.FieldTimestamp | state.FieldName,
					})
					folding += time.Since(began)
				}
				for task := range tasks { // each worker has one child process
					worker := rng.IntN(workers)
					if task%2 == 0 {
						sender := rng.IntN(workers)
						merge(workers+sender, sender)
						apply(state.TaskSent, workers+sender, task)
						merge(worker, workers+sender)
					} else {
						apply(state.TaskSent, workers, task)
						merge(worker, workers)
					}
					apply(state.TaskReceived, worker, task)
					apply(state.TaskStarted, worker, task)
					apply(state.TaskSucceeded, worker, task)
				}
			}
			b.ReportMetric(float64(full)/float64(events), "full-B/event")
			b.ReportMetric(float64(changed)/float64(events), "change-B/event")
			b.ReportMetric(float64(merging)/float64(folding), "fold-ratio")
		})
	}
}
