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
	ReasonBackend    Reason = "backend"     // the result backend knows its end
	ReasonDismissed  Reason = "dismissed"   // a person has said so
)

// Conclusion says why an unfinished task is not expected to report an end. It is no event: the task keeps its state,
// and its next event takes the conclusion back.
type Conclusion struct {
	Reason   Reason
	Evidence string // in words, as a sentence without its full stop; who, for ReasonDismissed
	At       int64  // when it was concluded, µs by the local clock
}

// maxEvidence bounds the bytes of evidence.
const maxEvidence = 300

// Conclude notes a conclusion on an unfinished task and reports whether that changed anything. It replaces an older
// one, but for one that a person has made, which only another person's replaces.
func (c *Cluster) Conclude(id string, k Conclusion) bool {
	key, _ := key(id)
	i, ok := c.index[key]
	if !ok || c.states.final(c.rows.at(i).state) {
		return false
	}
	r := c.rows.at(i)
	if r.marks&dismissed != 0 && k.Reason != ReasonDismissed {
		return false
	}
	c.remark(i, func(r *row) {
		c.takeBack(r)
		c.note(r, k)
	})
	return true
}

// Reopen takes the conclusion on a task back and reports whether there was one.
func (c *Cluster) Reopen(id string) bool {
	key, _ := key(id)
	i, ok := c.index[key]
	if !ok || c.rows.at(i).marks&concluded == 0 {
		return false
	}
	c.remark(i, c.takeBack)
	return true
}

// remark has f change what is concluded on a row.
func (c *Cluster) remark(i uint32, f func(r *row)) {
	r := c.rows.at(i)
	c.tally.remove(r)
	f(r)
	c.tally.add(r)
	c.markUnsaved(i, r)
	c.order.update(c.entryOf(i, r))
	c.version++
}

// note marks a row, which is not counted at the time.
func (c *Cluster) note(r *row, k Conclusion) {
	k.Evidence = truncate.Bytes(strings.Clone(k.Evidence), maxEvidence)
	c.concluded[r.id] = k
	switch k.Reason {
	case ReasonDismissed:
		r.marks |= dismissed
	case ReasonOrphaned:
		r.marks |= lost | orphaned
	default:
		r.marks |= lost
	}
}

// takeBack forgets what was concluded on a row, which is not counted at the time, and what was about to be.
func (c *Cluster) takeBack(r *row) {
	delete(c.absent, r.id)
	delete(c.listed, r.id)
	if r.marks&concluded != 0 {
		r.marks &^= concluded | orphaned
		delete(c.concluded, r.id)
	}
}

// judge fills in what was concluded.
func (c *Cluster) judge(t *Task, r *row) {
	switch {
	case r.marks&concluded != 0:
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
