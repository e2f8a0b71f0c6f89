package state

import "math"

// celeryRules repeats celery/events/state.py and the clock of celery/events/receiver.py: events count in
// the order in which they arrive, and each as often as it does.
type celeryRules struct{ c *Cluster }

// stamp is the receiver's rule: client clocks are replaced by its own less one, missing ones by a tick,
// others are used as sent.
func (u *celeryRules) stamp(e *Event) int64 {
	return u.c.clock.Celery(e.Clock, e.Kind == TaskSent, !e.Has(FieldClock))
}

func (u *celeryRules) duplicate(*row, *record) uint32 { return 0 }

// precedence of Celery's states (celery/states.py): lower wins. Custom ones share the place of None.
func precedence(s stateCode) int {
	switch s {
	case codeSuccess:
		return 0
	case codeFailure:
		return 1
	case codeRevoked:
		return 3
	case codeStarted:
		return 4
	case codeReceived:
		return 5
	case codeRejected:
		return 6
	case codeRetry:
		return 7
	case codePending:
		return 8
	}
	return 2
}

// merges reports whether an event of state next only adds to a task in state now: it logically
// happened before.
func merges(now, next stateCode) bool {
	return next != codeRetry && now != codeRetry && precedence(next) > precedence(now)
}

// receivedKeeps are the fields that a task-received adds when it merges (Task.merge_rules).
const receivedKeeps = FieldName | FieldArgs | FieldKwargs | FieldParentID | FieldRootID | FieldRetries | FieldETA | FieldExpires

func (u *celeryRules) summarize(records []*record) summary {
	s := summary{state: codePending}
	for _, e := range records {
		if e.kind == TaskSent {
			s.sent = e.route
		} else {
			s.process = e.process
		}
		if e.route != 0 {
			s.name = e.route
		}
		if next := stateOf(e); !merges(s.state, next) {
			s.state = next
		}
	}
	if u.c.states.final(s.state) {
		s.flags |= ended
	}
	return s
}

func (u *celeryRules) fill(t *Task, records []*record) {
	v := &viewer{c: u.c, t: t}
	now := codePending
	t.UpdatedAt = 0
	for _, e := range records {
		f := v.read(e)
		next := stateOf(e)
		keep := Fields(math.MaxUint32)
		if merges(now, next) {
			if e.kind == TaskReceived {
				keep = receivedKeeps
			}
		} else {
			now = next
		}
		if keep&FieldTimestamp != 0 {
			t.UpdatedAt, t.Stamp = e.micros, u.c.stampOf(e)
		}
		v.celeryEvent(e)
		v.copy(f, e, keep)
	}
	t.State = u.c.states.name(now)
}

// celeryEvent sets the attributes that an event sets whatever the state: the time of its
// name, and who sent it.
func (v *viewer) celeryEvent(e *record) {
	host := v.c.processes.key(e.process).Hostname
	if e.kind == TaskSent {
		v.t.SentAt, v.t.Client = e.micros, &host
		return
	}
	v.t.Worker = &host
	if at := v.t.at(e.kind); at != nil {
		*at = e.micros
	}
}

// copy overwrites the task's fields with the event's, null ones included.
func (v *viewer) copy(f *Event, e *record, keep Fields) {
	t := v.t
	put := func(dst **string, bit Fields, value string) {
		if f.Present&keep&bit == 0 {
			return
		}
		*dst = nil
		if f.Null&bit == 0 {
			*dst = new(value)
		}
	}
	put(&t.Args, FieldArgs, f.Args)
	put(&t.Kwargs, FieldKwargs, f.Kwargs)
	put(&t.RootID, FieldRootID, f.RootID)
	put(&t.ParentID, FieldParentID, f.ParentID)
	put(&t.ETA, FieldETA, f.ETA)
	put(&t.Expires, FieldExpires, f.Expires)
	put(&t.Result, FieldResult, f.Result)
	put(&t.Exception, FieldException, f.Exception)
	put(&t.Traceback, FieldTraceback, f.Traceback)
	k := v.c.routes.key(e.route)
	put(&t.Name, FieldName, k.name)
	if e.kind == TaskSent {
		put(&t.Queue, FieldQueue, k.queue)
		put(&t.Exchange, FieldExchange, k.exchange)
		put(&t.RoutingKey, FieldRoutingKey, k.routingKey)
	}
	if f.Present&keep&FieldRetries != 0 {
		t.Retries = nil
		if f.Has(FieldRetries) {
			t.Retries = new(f.Retries)
		}
	}
	if f.Present&keep&FieldRuntime != 0 {
		t.RuntimeSeconds = nil
		if f.Has(FieldRuntime) {
			t.RuntimeSeconds = new(f.Runtime)
		}
	}
}
