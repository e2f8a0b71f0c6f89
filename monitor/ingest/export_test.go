package ingest

import "github.com/umbelhq/umbel/state"

// HoldAt lets a monitor that does not run yet receive no more when so many bytes of journal wait to be written.
func (in *Ingester) HoldAt(bytes int) { in.maxWaiting = bytes }

// RestoreFirst lets a monitor that does not run yet receive once so many finished tasks are loaded.
func (in *Ingester) RestoreFirst(tasks int) { in.restoreFirst = tasks }

// MemoryLimits returns what may be held of a cluster that takes f, where tasks and text are configured, at a memory limit, if
// rest bytes live beside the cluster.
func MemoryLimits(f state.Footprint, tasks int, text, limit, rest int64) (MemoryHealth, int, int64) {
	g := memoryGuard{tasks: tasks, text: text, usage: func() memoryUsage {
		return memoryUsage{limit: limit, live: f.Tasks + f.Text + rest, cycles: 1}
	}}
	n, bytes, h := g.limits(f)
	return h, n, bytes
}
