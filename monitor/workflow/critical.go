package workflow

import (
	"cmp"
	"slices"
)

// Hop is one task on the critical path.
type Hop struct {
	Task int // index in Workflow.Tasks
	// Wait is from when the message of an attempt was sent until the attempt began, of all attempts together.
	Wait   Length
	Waited bool   // Wait is known
	Run    Length // from when an attempt began until it ended, or until it sent the next task of the path
	Ran    bool   // Run is known
	// Hold is how much longer than all others in the header of its chord it took, if it is the one that the body waited for.
	Hold Length
	Held bool
	// Inferred says that its header is taken for one by what it looks like.
	Inferred bool
	// Rival is the index of another task of the header that may have ended last, -1 if there is none.
	Rival int
}

// Critical returns the chain of tasks that decided when the workflow ended, the first to be sent first: from the task that
// ended last, each was sent by the one before it. In a chord, that is the task of the header that ended last. Headers are
// those of groups, and where these tell of none, those that Header infers. A nil elapsed trusts all clocks. It is empty if no
// task has ended.
func (w *Workflow) Critical(groups Groups, elapsed ElapsedFunc) []Hop {
	last := -1
	for i := range w.Tasks {
		if end := w.Tasks[i].EndedAt(); end != 0 && (last < 0 || end > w.Tasks[last].EndedAt()) {
			last = i
		}
	}
	var path []Hop
	for i, next := last, -1; i >= 0; i, next = w.Tasks[i].Parent, i {
		path = append(path, w.hop(i, next, groups, elapsed))
	}
	slices.Reverse(path)
	return path
}

// hop measures a task before the next of the path, -1 if it is the last.
func (w *Workflow) hop(i, next int, groups Groups, elapsed ElapsedFunc) Hop {
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
		if wait, ok := w.Waited(i, n, begun, elapsed); ok {
			h.Wait, h.Waited = h.Wait.plus(wait), true
		}
		end := e.EndedAt
		if sent != 0 && (end == 0 || end > sent) && n == len(t.Executions)-1 {
			end = sent // by a clock of the same host
		}
		if begun != 0 && end != 0 {
			h.Run, h.Ran = h.Run.plus(exactly(max(end-begun, 0))), true
		}
	}
	if next >= 0 {
		w.hold(&h, next, groups, elapsed)
	}
	return h
}

// hold measures how long the body of a chord waited for a task of its header alone.
func (w *Workflow) hold(h *Hop, body int, groups Groups, elapsed ElapsedFunc) {
	header, inferred := w.Header(body, groups)
	t := &w.Tasks[h.Task]
	var second *Task
	for _, i := range header {
		if other := &w.Tasks[i]; i != h.Task && (second == nil || other.EndedAt() > second.EndedAt()) {
			second, h.Rival = other, i
		}
	}
	if second == nil || second.EndedAt() == 0 || t.EndedAt() == 0 {
		h.Rival = -1
		return
	}
	h.Hold, h.Held, h.Inferred = between(second.ended(), t.ended(), elapsed), true, inferred
	if h.Hold.Low > 0 {
		h.Rival = -1
	}
}

// Header returns the tasks that a task waited for as the body of a chord, indices in Workflow.Tasks, nil if it is none, and
// whether they are inferred. Celery sends the body when the last task of the header has ended, as a child of that. Where groups
// tell of none, and events never do, a task is taken for a body if its parent has siblings of the same name without children of
// their own, which all ended before it was sent.
func (w *Workflow) Header(body int, groups Groups) (header []int, inferred bool) {
	t := &w.Tasks[body]
	if id := groups.Body[t.ID]; id != "" {
		for i := range w.Tasks {
			if groups.Of[w.Tasks[i].ID] == id {
				header = append(header, i)
			}
		}
		return header, false
	}
	if t.Parent < 0 || w.Tasks[t.Parent].Parent < 0 {
		return nil, false
	}
	group := groups.Of[w.Tasks[t.Parent].ID]
	last := &w.Tasks[t.Parent]
	for _, i := range w.Tasks[last.Parent].Children {
		s := &w.Tasks[i]
		if s.Name != last.Name || groups.Of[s.ID] != group {
			continue
		}
		if i != t.Parent && (len(s.Children) > 0 || s.EndedAt() == 0 || t.FirstAt() != 0 && s.EndedAt() > max(t.FirstAt(), last.EndedAt())) {
			return nil, false
		}
		header = append(header, i)
	}
	if len(header) < 2 {
		return nil, false
	}
	return header, true
}

// ended is when its last attempt ended.
func (t *Task) ended() moment {
	e := &t.Executions[len(t.Executions)-1]
	return e.moment(e.EndedAt)
}
