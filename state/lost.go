package state

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/internal/truncate"
)

// Reason is the kind of a Conclusion.
type Reason string

// Reasons for which a task is not expected to end.
const (
	ReasonOrphaned   Reason = "orphaned"    // the process that ran it has ended
	ReasonNotRunning Reason = "not_running" // its worker does not have it any more
	ReasonExpired    Reason = "expired"     // no worker took it before it expired
	ReasonBackend    Reason = "backend"     // the result backend has its result
	ReasonDismissed  Reason = "dismissed"   // a person dismissed it
)

// Conclusion is why an unfinished task is not expected to report an end. It is no event: the task keeps its state,
// and its next event clears the conclusion.
type Conclusion struct {
	Reason   Reason
	Evidence string // in words, as a sentence without its full stop; who, for ReasonDismissed
	At       int64  // when it was concluded, µs by the local clock
}

// maxEvidence bounds the bytes of evidence.
const maxEvidence = 300

// Conclude notes a conclusion on an unfinished task and reports whether that changed anything. It replaces an older
// one, except that a person's is replaced by a person's only.
func (c *Cluster) Conclude(id string, k Conclusion) bool {
	key, _ := key(id)
	i := c.find(key)
	if i == 0 || c.states.final(c.rows.at(i).state) {
		return false
	}
	r := c.rows.at(i)
	if r.flags&dismissed != 0 && k.Reason != ReasonDismissed {
		return false
	}
	c.changeConclusion(i, func(r *row) {
		c.clearConclusion(r)
		c.setConclusion(r, k)
	})
	return true
}

// Reopen clears the conclusion on a task and reports whether there was one.
func (c *Cluster) Reopen(id string) bool {
	key, _ := key(id)
	i := c.find(key)
	if i == 0 || c.rows.at(i).flags&concluded == 0 {
		return false
	}
	c.changeConclusion(i, c.clearConclusion)
	return true
}

// changeConclusion has f change what is concluded on a row.
func (c *Cluster) changeConclusion(i uint32, f func(r *row)) {
	r := c.rows.at(i)
	c.tally.remove(r)
	f(r)
	c.tally.add(r)
	c.markUnsaved(i, r)
	c.byStamp.update(c.itemOf(i, r))
	c.version++
}

// setConclusion records a conclusion on a row, which is not counted at the time.
func (c *Cluster) setConclusion(r *row, k Conclusion) {
	k.Evidence = truncate.Bytes(strings.Clone(k.Evidence), maxEvidence)
	c.concluded[r.id] = k
	switch k.Reason {
	case ReasonDismissed:
		r.flags |= dismissed
	case ReasonOrphaned:
		r.flags |= lost | orphaned
	default:
		r.flags |= lost
	}
}

// clearConclusion forgets what was concluded on a row, which is not counted at the time, and what was about to be.
func (c *Cluster) clearConclusion(r *row) {
	delete(c.absent, r.id)
	delete(c.listed, r.id)
	if r.flags&concluded != 0 {
		r.flags &^= concluded | orphaned
		delete(c.concluded, r.id)
	}
}

// fillConclusion fills in what was concluded.
func (c *Cluster) fillConclusion(t *Task, r *row) {
	switch {
	case r.flags&concluded != 0:
		k := c.concluded[r.id]
		t.Orphaned = k.Reason == ReasonOrphaned
		t.Returned, t.OrphanReason = false, ""
		if t.Orphaned {
			t.OrphanReason = k.Evidence
		}
		if k.Reason == ReasonDismissed {
			t.Dismissed = &k
		} else {
			t.Lost = &k
		}
	case t.Orphaned:
		t.Lost = &Conclusion{Reason: ReasonOrphaned, Evidence: t.OrphanReason, At: c.workers[*t.Worker].lastSeen}
	}
}

func appendConclusion(b []byte, k Conclusion) []byte {
	return binary.AppendVarint(appendText(appendText(b, string(k.Reason)), k.Evidence), k.At)
}

func (r *savedReader) conclusion() (k Conclusion) {
	k.Reason = Reason(r.text())
	k.Evidence = r.text()
	k.At = r.varint()
	return k
}

// latest returns the newest event of an execution's own process, nil if it has none.
func (r *execution) latest() (newest *record) {
	for _, e := range slices.Backward(r.byKind[:]) {
		if e != nil && e.process == r.process && (newest == nil || byClock(e, newest) > 0) {
			newest = e
		}
	}
	return newest
}
