package state

import "slices"

// causalRules makes the state of a task a function of the set of its events.
type causalRules struct {
	c    *Cluster
	fold causal
}

func (u *causalRules) stamp(e *Event) int64 {
	if e.Kind == TaskSent {
		return u.c.clock.Client()
	}
	return u.c.clock.Repair(e.lane(), e.Clock, e.Micros)
}

// repeats compares identities: process, raw clock, kind with attempt or custom state, and the timestamp, which
// tells the lives of a reused pid apart. An event whose timestamp was unusable has none at any receipt.
func (u *causalRules) repeats(r *row, e *record) uint32 {
	for i := r.head; i != 0; {
		o := u.c.records.at(i)
		if o.lane == e.lane && o.clock == e.clock && o.kind == e.kind && o.n == e.n &&
			(o.micros == e.micros || o.flags&e.flags&retimed != 0) {
			return i
		}
		i = o.next
	}
	return 0
}

func (u *causalRules) show(records []*record) shown {
	u.fold.fold(records)
	s := shown{state: codePending, name: u.fold.named()}
	if sent := u.fold.source(); sent != nil {
		s.sent = sent.call
	}
	if run := u.fold.newest(); run != nil {
		s.state, s.lane = stateOf(run.strongest()), run.lane
		if run.ended() {
			s.marks |= ended
		}
	}
	if u.fold.redelivered {
		s.marks |= redelivered
	}
	if u.fold.renamed(s.name) {
		s.marks |= renamed
	}
	return s
}

// named returns the call that names the task: its newest task-received's, else its task-sent's, else that
// of any event; 0 if none has a name.
func (f *causal) named() uint32 {
	for _, run := range slices.Backward(f.runs) {
		if e := run.stands[TaskReceived]; e != nil && e.call != 0 {
			return e.call
		}
	}
	if s := f.source(); s != nil && s.call != 0 {
		return s.call
	}
	for _, run := range slices.Backward(f.runs) {
		for _, k := range strength {
			if e := run.stands[k]; e != nil && e.call != 0 {
				return e.call
			}
		}
	}
	return 0
}

func (u *causalRules) fill(t *Task, records []*record) {
	f, v := &u.fold, viewer{c: u.c, t: t}
	f.fold(records)
	for i := range f.runs {
		t.Executions = append(t.Executions, v.execution(&f.runs[i]))
	}
	if name := u.c.calls.key(f.named()).name; name != "" {
		t.Name = new(name)
	}
	sent := f.source()
	run := f.newest()
	if run != nil {
		x := &t.Executions[len(t.Executions)-1]
		t.State, t.Result, t.Exception, t.Traceback, t.RuntimeSeconds = x.State, x.Result, x.Exception, x.Traceback, x.RuntimeSeconds
		t.Times, t.Revocation = x.Times, x.Revocation
		t.Worker = new(x.Worker)
		t.Retries = new(x.Attempt)
		if !run.ended() {
			u.c.abandon(t, run)
		}
	}
	if sent != nil {
		v.sent(sent)
	}
	v.published(f, run, sent)
	t.Redelivered = f.redelivered
	if run != nil && t.StartedAt != 0 {
		from := run.stands[TaskReceived]
		if sent != nil && int64(sent.n) == run.attempt && f.fits(sent, run) { // an older one would count the attempts before
			from = sent
		}
		if from != nil {
			if micros, known := waited(from, run.stands[TaskStarted]); known {
				t.WaitSeconds = new(float64(micros) / 1e6)
			}
		}
	}
}

// published fills in what publishers decided, as the attempt shown has it. What is not known of that one is
// taken from another, since a retry repeats it unless it is told not to: all but the ETA.
func (v viewer) published(f *causal, run *run, sent *record) {
	if run != nil {
		for _, k := range slices.Backward(strength[:]) { // its task-received before all
			if e := run.stands[k]; e != nil {
				v.origins(e)
			}
		}
		for _, r := range slices.Backward(f.runs) {
			if e := r.stands[TaskReceived]; e != nil && r.generation == run.generation && r.attempt == run.attempt {
				v.origins(e)
			}
		}
	}
	if sent != nil && !f.fits(sent, run) {
		sent = nil
	}
	if sent != nil && (run == nil || int64(sent.n) == run.attempt) {
		v.origins(sent)
	}
	for _, r := range slices.Backward(f.runs) {
		if e := r.stands[TaskReceived]; e != nil && r.generation == run.generation {
			v.repeated(v.read(e))
		}
	}
	if sent != nil {
		v.repeated(v.read(sent))
	}
	if run != nil && run.generation > 0 && f.first != nil {
		v.parent(f.first)
	}
}

// parent takes the parent from the first message of a task that was replaced: replacements have others, among them
// the task itself.
func (v viewer) parent(first *record) {
	f := v.read(first)
	v.t.ParentID = nil
	fill(&v.t.ParentID, &f, FieldParentID, f.parent)
}

// viewer copies records into a Task.
type viewer struct {
	c *Cluster
	t *Task
}

// read returns the fields of a record, marking the task if some of its text is gone.
func (v viewer) read(e *record) fields {
	f, whole := v.c.fields(e)
	v.t.Truncated = v.t.Truncated || !whole
	return f
}

// execution copies a run. The strongest event has the first word, weaker ones fill what is empty.
func (v viewer) execution(r *run) Execution {
	lane := v.c.lanes.key(r.lane)
	x := Execution{
		Attempt: r.attempt, Worker: lane.Hostname, PID: lane.PID, Inferred: !r.received, Replaced: r.replaced,
		State: v.c.states.name(stateOf(r.strongest())),
	}
	if e := r.stands[TaskReceived]; e != nil {
		if name := v.c.calls.key(e.call).name; name != "" {
			x.Name = new(name)
		}
	}
	for _, k := range strength {
		e := r.stand(k)
		if e == nil {
			continue
		}
		if at := x.Times.at(k); at != nil {
			*at = e.micros
		}
		f := v.read(e)
		fill(&x.Result, &f, FieldResult, f.result)
		fill(&x.Exception, &f, FieldException, f.exc)
		fill(&x.Traceback, &f, FieldTraceback, f.trace)
		if x.RuntimeSeconds == nil && f.has(FieldRuntime) {
			x.RuntimeSeconds = new(f.runtime)
		}
	}
	if x.Exception != nil && x.Traceback != nil {
		x.Exception = new(raised(*x.Exception, *x.Traceback))
	}
	if e := r.strongest(); e.kind == TaskRevoked {
		x.Revocation = new(revocationOf(e.n))
	}
	return x
}

// origins fills in what the publisher of an attempt decided, where it is still unknown.
func (v viewer) origins(e *record) {
	f, t := v.read(e), v.t
	v.repeated(f)
	fill(&t.ETA, &f, FieldETA, f.eta)
	if t.Retries == nil && f.has(FieldRetries) {
		t.Retries = new(f.retries)
	}
}

// repeated fills in what every attempt has in common, where it is still unknown.
func (v viewer) repeated(f fields) {
	t := v.t
	fill(&t.Args, &f, FieldArgs, f.args)
	fill(&t.Kwargs, &f, FieldKwargs, f.kwargs)
	fill(&t.Expires, &f, FieldExpires, f.expires)
	fill(&t.RootID, &f, FieldRootID, f.root)
	if f.parent != t.ID { // a retry calls itself its parent
		fill(&t.ParentID, &f, FieldParentID, f.parent)
	}
}

// sent fills in what a task-sent says of the way that the task took.
func (v viewer) sent(e *record) {
	t := v.t
	t.SentAt = e.micros
	t.Client = new(v.c.lanes.key(e.lane).Hostname)
	if e.call == 0 {
		return
	}
	call := v.c.calls.key(e.call)
	f := v.read(e)
	fill(&t.Queue, &f, FieldQueue, call.queue)
	fill(&t.Exchange, &f, FieldExchange, call.exchange)
	fill(&t.RoutingKey, &f, FieldRoutingKey, call.routingKey)
}

// fill sets an unknown field from one that the event had.
func fill(dst **string, f *fields, bit Fields, value string) {
	if *dst == nil && f.has(bit) {
		*dst = new(value)
	}
}
