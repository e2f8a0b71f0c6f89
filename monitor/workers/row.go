// Package workers lists workers with what events, inspections and the counters say of each, by host or in any order. It asks
// no worker anything.
package workers

import (
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

// Row is a worker with what is known of it. Nil and zero are unknown.
type Row struct {
	state.Worker

	Pool        string   // prefork
	Slots       *int64   // tasks that it can run at once
	Queues      []string // that it consumes from, sorted
	QueuesKnown bool
	ReportedAt  int64  // when it reported Pool and Queues, µs, if it has not when all were asked last; else 0
	Memory      *int64 // the most that its main process has used, bytes
	Ends        Ends   // of the last 24 hours
	Longest     *Run   // the running task that stands out most, nil if none does
}

// Run is a task that runs.
type Run struct {
	ID, Name  string        // Name is empty if unknown
	StartedAt int64         // µs, by the local clock
	Elapsed   time.Duration // since then
	Usual     time.Duration // within which such tasks succeed, 0 if unknown
}

const (
	farBeyond = 3                // × the usual run time
	leastLong = 10 * time.Second // nobody waits for a task that has run less
)

// TooLong reports whether the task has run far longer than such tasks do.
func (r Run) TooLong() bool {
	return r.Usual > 0 && r.Elapsed >= leastLong && r.Elapsed > farBeyond*r.Usual
}

// Rows returns a row for each worker, in the same order, with what topology and counts say, and the running tasks of each.
func Rows(list []state.Worker, topology remote.Topology, counts Counts, longest map[string]Run) []Row {
	queues := queuesByWorker(topology)
	rows := make([]Row, len(list))
	for i, w := range list {
		r := Row{Worker: w, Pool: topology.Pools[w.Name].Kind, Slots: topology.Pools[w.Name].Slots}
		r.Queues, r.QueuesKnown = queues[w.Name]
		if !r.QueuesKnown && w.LastReport != nil {
			r = LastReported(w)
		}
		if n, ok := topology.MaxRSS[w.Name]; ok {
			r.Memory = new(inBytes(n, w.System))
		}
		r.Ends = counts.ByWorker[w.Name]
		if run, ok := longest[w.Name]; ok {
			r.Longest = &run
		}
		rows[i] = r
	}
	return rows
}

// LastReported returns a worker with the pool and the queues that it last reported.
func LastReported(w state.Worker) Row {
	r := Row{Worker: w}
	if last := w.LastReport; last != nil {
		r.Pool, r.Slots, r.QueuesKnown = last.Pool, last.Slots, true
		r.Queues, r.ReportedAt = slices.Sorted(slices.Values(last.Queues)), last.At
	}
	return r
}

// inBytes converts what getrusage tells on a system: bytes on macOS, KiB elsewhere.
func inBytes(maxRSS int64, system *string) int64 {
	if system != nil && *system == "Darwin" {
		return maxRSS
	}
	return maxRSS << 10
}

// queuesByWorker returns the queues of all workers that reported theirs.
func queuesByWorker(known remote.Topology) map[string][]string {
	list := map[string][]string{}
	for _, worker := range known.Expected {
		if !slices.Contains(known.Missing, worker) {
			list[worker] = nil
		}
	}
	for queue, workers := range known.Queues {
		for _, worker := range workers {
			list[worker] = append(list[worker], queue)
		}
	}
	for _, queues := range list {
		slices.Sort(queues)
	}
	return list
}
