package state

// plain returns the summary of a task whose history is the usual one, and whether it is: at most one task-sent; one process
// that received the task, started it, and reported that it succeeded or failed, or has come thus far; each event in the order in
// which it happened. It says of these what causalRules.summarize does, without sorting them, and that none of the last event's
// kind came before it, and that no task-started is missing. All other histories go the long way.
func (c *Cluster) plain(r *row) (s summary, ok bool) {
	if c.options.Rules != Causal {
		return s, false
	}
	var sent, received, started, last *record
	s.state = codePending
	for i := r.head; i != 0; {
		e := c.records.at(i)
		if e.kind == TaskSent {
			if sent != nil || e.flags&ownParent != 0 {
				return s, false
			}
			sent, s.sent, i = e, e.route, e.next
			continue
		}
		if last != nil && (e.process != last.process || e.clock <= last.clock || e.micros < last.micros) {
			return s, false
		}
		switch e.kind {
		case TaskReceived:
			if last != nil || e.flags&ownParent != 0 || e.route == 0 || e.clock == 0 {
				return s, false
			}
			received, s.name, s.process = e, e.route, e.process
		case TaskStarted:
			if last == nil || last != received {
				return s, false
			}
			started = e
		case TaskSucceeded, TaskFailed:
			if last == nil || last != started || e.flags&emptySuccess != 0 {
				return s, false
			}
			s.flags = ended
		default:
			return s, false
		}
		last, s.state, i = e, kindStates[e.kind], e.next
	}
	if last == nil {
		s.name = s.sent
		return s, sent != nil
	}
	return s, sent == nil || sent.process != last.process
}
