package state

import (
	"math"
	"slices"

	"github.com/umbelhq/umbel/clock"
)

// orphanAfter is how long a worker may send nothing, µs, before its tasks are orphaned. A solo worker sends nothing while
// it runs a task, nor does one that has lost the broker.
const orphanAfter = 3_600_000_000

// markOrphaned marks a task whose process has ended without ending it. An execution that had started is orphaned. One
// that had not is returned: its message was not acknowledged, so the broker delivers it again.
func (c *Cluster) markOrphaned(t *Task, r *execution) {
	t.OrphanReason = c.processEnd(c.processes.key(r.process), r.first)
	t.Returned = t.OrphanReason != "" && r.dominant().kind == TaskReceived
	t.Orphaned = t.OrphanReason != "" && !t.Returned
}

// processEnd describes how a process, on which an execution began at micros, has ended; empty if it may still live.
func (c *Cluster) processEnd(l clock.Process, micros int64) string {
	w := c.workers[l.Hostname]
	if w == nil {
		return ""
	}
	now := w.current()
	switch {
	case now.PID != l.PID && w.replaced(l.PID, now), w.forgot(l.PID) && micros < w.incarnations[0].First:
		return "its worker process has been replaced by a newer one"
	case now.PID == l.PID && micros < now.First:
		return "its worker process has restarted"
	case c.hasShutDown(w):
		return "its worker has shut down"
	case c.now-w.lastSeen >= orphanAfter && c.status(w) == Offline:
		return "its worker has sent no event for an hour"
	}
	return ""
}

// had reports whether a process of that pid had begun before micros.
func (w *worker) had(pid, micros int64) bool {
	return slices.ContainsFunc(w.incarnations, func(o incarnation) bool { return o.PID == pid && o.First < micros })
}

// replaced reports whether a process of that pid had begun before now, and has sent nothing since: of two that live
// under one node name, which Celery only warns of, neither replaces the other.
func (w *worker) replaced(pid int64, now *incarnation) bool {
	return slices.ContainsFunc(w.incarnations, func(o incarnation) bool {
		return o.PID == pid && o.First < now.First && (o.Last < now.First || now.Last-o.Last > minLate)
	})
}

// forgot reports whether there may have been a process of that pid before those that are remembered.
func (w *worker) forgot(pid int64) bool { return w.dropped > 0 && !w.had(pid, math.MaxInt64) }

// unfinishedOf returns how many unfinished tasks events place on a process, and how many of them it has received and not
// started.
func (c *Cluster) unfinishedOf(l clock.Process) (unfinished, received int) {
	n := c.processes.lookup(l)
	return countAt(c.tally.running, n), countAt(c.tally.waiting, n)
}

// orphansOf counts the tasks of a process that are orphaned, and those that were returned.
func (c *Cluster) orphansOf(process uint32) (orphaned, returned int) {
	l := c.processes.key(process)
	unfinished, received := c.unfinishedOf(l)
	if c.processEnd(l, math.MaxInt64) != "" {
		return unfinished - received, received
	}
	w := c.workers[l.Hostname]
	if w == nil {
		return 0, 0
	}
	if now := w.current(); !w.forgot(l.PID) && (now.PID != l.PID || !w.had(l.PID, now.First)) {
		return 0, 0
	}
	// Perhaps some are: those that an earlier process had begun.
	c.unfinishedOn(process, func(r *row) {
		switch t := c.task(r); {
		case t.Orphaned:
			orphaned++
		case t.Returned:
			returned++
		}
	})
	return orphaned, returned
}

// unfinishedOn calls f with the unfinished tasks of a process that are not concluded.
func (c *Cluster) unfinishedOn(process uint32, f func(r *row)) {
	worker, left := c.hosts.lookup(c.processes.key(process).Hostname), countAt(c.tally.running, process)
	chunk, end := c.byStamp.end()
	c.byStamp.newest(chunk, end, func(entries []listItem) bool {
		for _, e := range slices.Backward(entries) {
			if e.worker != worker || e.flags&(ended|concluded) != 0 {
				continue
			}
			if r := c.rows.at(e.row); r.process == process {
				left--
				f(r)
			}
		}
		return left > 0
	})
}

// hasShutDown reports whether the last process of a worker sent worker-offline and nothing since.
func (c *Cluster) hasShutDown(w *worker) bool {
	l := w.current()
	return l.Goodbye.Micros != 0 && !l.Alive.after(l.Goodbye) && c.status(w) == Offline
}
