package state

import "slices"

// A task that calls self.replace() publishes another task under its own id, and ends without an event. Its message
// has attempt 0 again, and names the task as its own parent, or, where a chain or a chord replaces it, another task.
// A message that is delivered again has the same fields.

// replacement is a task-received of a message that replaced the task, and how many messages had before, this one
// included: its generation. That of the first message is 0.
type replacement struct {
	received   *record
	generation int
}

// sameMessage reports whether two task-received of attempt 0 may be of one message.
func sameMessage(a, b *record) bool {
	return a.flags&(ownParent|otherParent) == b.flags&(ownParent|otherParent) && (a.route == b.route || a.route == 0 || b.route == 0)
}

// findReplacements sorts out the messages that replaced the task.
func (f *causal) findReplacements() {
	f.replacements, f.republished = f.replacements[:0], f.republished[:0]
	var first *record // of the message that came first
	for _, e := range f.workerEvents {
		if e.kind == TaskReceived && e.n == 0 && e.flags&ownParent == 0 && (first == nil || f.earlier(e, first)) {
			first = e
		}
	}
	for _, e := range f.workerEvents {
		if e.kind == TaskReceived && e.n == 0 && (e.flags&ownParent != 0 || !sameMessage(e, first)) {
			f.replacements = append(f.replacements, replacement{received: e})
		}
	}
	for _, e := range f.sent {
		if e.n == 0 && e.flags&ownParent != 0 {
			f.republished = append(f.republished, e)
		}
	}
	slices.SortFunc(f.replacements, func(a, b replacement) int { return f.compareRecords(a.received, b.received) })
	slices.SortFunc(f.republished, f.compareRecords)
	f.first = first
	f.number()
}

// earlier reports whether the message of a is the likelier one to have come first: a task that was not sent from
// another has no parent before it is replaced.
func (f *causal) earlier(a, b *record) bool {
	if aChild, bChild := a.flags&otherParent != 0, b.flags&otherParent != 0; aChild != bChild {
		return bChild
	}
	return f.compareRecords(a, b) < 0
}

// number gives replacements their generations. Each has one of its own, unless more were received than sent: then
// those that follow the same task-sent are one message, delivered again.
func (f *causal) number() {
	again := len(f.republished) > 0 && len(f.replacements) > len(f.republished)
	for i := range f.replacements {
		r := &f.replacements[i]
		r.generation = 1
		if i == 0 {
			continue
		}
		last := &f.replacements[i-1]
		r.generation = last.generation + 1
		if again && sameMessage(last.received, r.received) && f.publication(last.received) == f.publication(r.received) {
			r.generation = last.generation
		}
	}
}

// publication returns the number of the task-sent of a replacement that a task-received came from: the last before it.
func (f *causal) publication(received *record) int {
	n := 0
	for i, s := range f.republished {
		if s.micros <= received.micros {
			n = i
		}
	}
	return n
}

// generation returns that of the message that a task-received is of, or of any other event at its time. A retry has
// the name of the message that it repeats.
func (f *causal) generation(e *record) (n int) {
	if len(f.replacements) == 0 {
		return 0
	}
	named := e.kind == TaskReceived && e.route != 0
	if e.kind == TaskReceived && e.n == 0 {
		for _, r := range f.replacements {
			if r.received == e {
				return r.generation
			}
		}
		return 0
	}
	alike := func(r *record) bool { return named && r != nil && r.route == e.route }
	found := alike(f.first)
	for _, r := range f.replacements {
		switch begun, like := r.received.micros <= e.micros, alike(r.received); {
		case like && (begun || !found):
			n, found = r.generation, true
		case begun && !found && !named:
			n = r.generation
		}
	}
	if named && !found {
		for _, r := range f.replacements {
			if r.received.micros <= e.micros {
				n = r.generation
			}
		}
	}
	return n
}

// renamed reports whether some execution had another name than the task.
func (f *causal) renamed(name uint32) bool {
	return len(f.replacements) > 0 && slices.ContainsFunc(f.executions, func(r execution) bool {
		e := r.byKind[TaskReceived]
		return e != nil && e.route != 0 && e.route != name
	})
}

// markReplaced marks the last execution of each message that was replaced, unless it has ended otherwise.
func (f *causal) markReplaced() {
	last := len(f.executions) - 1
	for i := range f.executions {
		r := &f.executions[i]
		next := i < last && f.executions[i+1].generation > r.generation
		r.replaced = !r.ended() && (next || i == last && f.waiting(r))
	}
}

// waiting reports whether a replacement was sent that no worker has received.
func (f *causal) waiting(newest *execution) bool {
	received := 0
	for i, r := range f.replacements {
		if r.received.flags&ownParent != 0 && (i == 0 || r.generation > f.replacements[i-1].generation) {
			received++
		}
	}
	return len(f.republished) > received && f.republished[len(f.republished)-1].micros > newest.first
}

// opening returns the task-received of the replacing message that an execution is of, nil if it is of the first message.
func (f *causal) opening(r *execution) *record {
	for _, x := range f.replacements {
		if r != nil && x.generation == r.generation {
			return x.received
		}
	}
	return nil
}

// fits reports whether a task-sent may be of the same message as an execution.
func (f *causal) fits(sent *record, r *execution) bool {
	opened := f.opening(r)
	return r == nil || sent.n > 0 || (sent.flags&ownParent != 0) == (opened != nil && opened.flags&ownParent != 0)
}
