package workflow

import (
	"cmp"
	"slices"
)

// Bounds are the least and the greatest value of a length of time, µs.
type Bounds struct{ Low, High int64 }

// Exact reports whether both are the same.
func (b Bounds) Exact() bool { return b.Low == b.High }

// OffsetFunc returns how far the wall clock of a node was ahead of Umbel's at a moment, µs, false if nothing bounds that.
type OffsetFunc func(node string, at int64) (Bounds, bool)

// Hop is one task on the critical path.
type Hop struct {
	Task int // index in Workflow.Tasks
	// Wait is from when the message of an attempt was sent until the attempt began, of all attempts together.
	Wait   Bounds
	Waited bool   // Wait is known
	Run    Bounds // from when an attempt began until it ended, or until it sent the next task of the path
	Ran    bool   // Run is known
	// Hold is how much longer than all others in the header of its chord it took, if it is the one that the body waited for.
	Hold Bounds
	Held bool
	// Rival is the index of another task of the header that may have ended last, -1 if there is none.
	Rival int
}

// Critical returns the chain of tasks that decided when the workflow ended, the first to be sent first: from the task that
// ended last, each was sent by the one before it. In a chord, that is the task of the header that ended last. A nil offset
// trusts all clocks. It is empty if no task has ended.
func (w *Workflow) Critical(offset OffsetFunc) []Hop {
	last := -1
	for i := range w.Tasks {
		if end := w.Tasks[i].EndedAt(); end != 0 && (last < 0 || end > w.Tasks[last].EndedAt()) {
			last = i
		}
	}
	var path []Hop
	for i, next := last, -1; i >= 0; i, next = w.Tasks[i].Parent, i {
		path = append(path, w.hop(i, next, offset))
	}
	slices.Reverse(path)
	return path
}

// hop measures a task before the next of the path, -1 if it is the last.
func (w *Workflow) hop(i, next int, offset OffsetFunc) Hop {
	t := &w.Tasks[i]
	h := Hop{Task: i, Rival: -1}
	sent := int64(0)
	if next >= 0 {
		sent = w.Tasks[next].FirstAt()
	}
	for n := range t.Executions {
		e := &t.Executions[n]
		begun := cmp.Or(e.StartedAt, e.ReceivedAt)
		if sent != 0 && begun > sent {
			break // it sent the next task before
		}
		if e.QueuedAt != 0 && begun != 0 {
			from := t.Client
			if n > 0 {
				from = t.Executions[n-1].Worker
			}
			h.Wait, h.Waited = h.Wait.plus(between(from, e.QueuedAt, e.Worker, begun, offset)), true
		}
		end := e.EndedAt
		if sent != 0 && (end == 0 || end > sent) && n == len(t.Executions)-1 {
			end = sent // by a clock of the same host
		}
		if begun != 0 && end != 0 {
			h.Run, h.Ran = h.Run.plus(Bounds{end - begun, end - begun}), true
		}
	}
	if next >= 0 {
		w.hold(&h, next, offset)
	}
	return h
}

// hold measures how long the body of a chord waited for a task of its header alone.
func (w *Workflow) hold(h *Hop, body int, offset OffsetFunc) {
	header := w.Header(body)
	t := &w.Tasks[h.Task]
	var second *Task
	for _, i := range header {
		if other := &w.Tasks[i]; i != h.Task && (second == nil || other.EndedAt() > second.EndedAt()) {
			second, h.Rival = other, i
		}
	}
	if second == nil {
		return
	}
	h.Hold, h.Held = between(second.worker(), second.EndedAt(), t.worker(), t.EndedAt(), offset), true
	if h.Hold.Low > 0 {
		h.Rival = -1
	}
}

// Header returns the tasks that a task waited for as the body of a chord, indices in Workflow.Tasks, nil if it is none. Events
// do not tell of chords. Celery sends the body when the last task of the header has ended, as a child of that: it is taken for
// a body if its parent has siblings of the same name without children of their own, which all ended before it was sent.
func (w *Workflow) Header(body int) []int {
	t := &w.Tasks[body]
	if t.Parent < 0 || w.Tasks[t.Parent].Parent < 0 {
		return nil
	}
	last := &w.Tasks[t.Parent]
	var header []int
	for _, i := range w.Tasks[last.Parent].Children {
		s := &w.Tasks[i]
		if s.Name != last.Name {
			continue
		}
		if i != t.Parent && (len(s.Children) > 0 || s.EndedAt() == 0 || t.FirstAt() != 0 && s.EndedAt() > max(t.FirstAt(), last.EndedAt())) {
			return nil
		}
		header = append(header, i)
	}
	if len(header) < 2 {
		return nil
	}
	return header
}

// worker is the node of its last attempt, empty if there is none.
func (t *Task) worker() string {
	if len(t.Executions) == 0 {
		return ""
	}
	return t.Executions[len(t.Executions)-1].Worker
}

func (b Bounds) plus(c Bounds) Bounds { return Bounds{b.Low + c.Low, b.High + c.High} }

// between is the time from a moment by the clock of one node to a moment by that of another.
func between(from string, start int64, to string, end int64, offset OffsetFunc) Bounds {
	d := end - start
	if offset == nil || from == to {
		return Bounds{d, d}
	}
	a, aKnown := offset(from, start)
	b, bKnown := offset(to, end)
	if !aKnown || !bKnown {
		return Bounds{d, d}
	}
	return Bounds{d - b.High + a.Low, d - b.Low + a.High}
}
