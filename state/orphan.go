package state

import (
	"math"
	"slices"

	"github.com/umbelhq/umbel/clock"
)

// abandon marks a task whose process has ended without ending it. An execution that had started is orphaned. One
// that had not is returned: its message was not acknowledged, so the broker delivers it again.
func (c *Cluster) abandon(t *Task, r *run) {
	t.OrphanReason = c.processEnd(c.lanes.key(r.lane), r.first)
	t.Returned = t.OrphanReason != "" && r.strongest().kind == TaskReceived
	t.Orphaned = t.OrphanReason != "" && !t.Returned
}

// processEnd says how a process, on which an execution began at micros, has ended; empty if it may still live.
func (c *Cluster) processEnd(l clock.Lane, micros int64) string {
	w := c.workers[l.Hostname]
	if w == nil {
		return ""
	}
	now := w.current()
	switch {
	case now.PID != l.PID && w.replaced(l.PID, now), w.forgot(l.PID) && micros < w.epochs[0].First:
		return "its worker process has been replaced by a newer one"
	case now.PID == l.PID && micros < now.First:
		return "its worker process has restarted"
	case c.status(w) == Offline:
		return "its worker is offline"
	}
	return ""
}

// had reports whether a process of that pid had begun before micros.
func (w *worker) had(pid, micros int64) bool {
	return slices.ContainsFunc(w.epochs, func(o life) bool { return o.PID == pid && o.First < micros })
}

// replaced reports whether a process of that pid had begun before now, and fell silent since: of two that live
// under one node name, which Celery only warns of, neither replaces the other.
func (w *worker) replaced(pid int64, now *life) bool {
	return slices.ContainsFunc(w.epochs, func(o life) bool {
		return o.PID == pid && o.First < now.First && (o.Last < now.First || now.Last-o.Last > minSilence)
	})
}

// forgot reports whether there may have been a process of that pid before those that are remembered.
func (w *worker) forgot(pid int64) bool { return w.dropped > 0 && !w.had(pid, math.MaxInt64) }

// held returns how many unfinished tasks events place on a process, and how many of them it has received and not
// started.
func (c *Cluster) held(l clock.Lane) (unfinished, received int) {
	at := func(counts []int32, i uint32) int {
		if int(i) >= len(counts) {
			return 0
		}
		return int(counts[i])
	}
	n := c.lanes.lookup(l)
	return at(c.tally.running, n), at(c.tally.waiting, n)
}

// abandoned counts the tasks of a process that are orphaned, and those that were returned.
func (c *Cluster) abandoned(lane uint32) (orphaned, returned int) {
	l := c.lanes.key(lane)
	unfinished, received := c.held(l)
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
	worker := c.hosts.lookup(l.Hostname)
	chunk, end := c.order.end()
	c.order.newest(chunk, end, func(entries []entry) bool {
		for _, e := range slices.Backward(entries) {
			if e.worker != worker || e.marks&ended != 0 || c.rows.at(e.row).lane != lane {
				continue
			}
			switch t := c.task(c.rows.at(e.row)); {
			case t.Orphaned:
				orphaned++
			case t.Returned:
				returned++
			}
			unfinished--
		}
		return unfinished > 0
	})
	return orphaned, returned
}
