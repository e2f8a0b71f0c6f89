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
	return u.c.clock.Repair(e.process(), e.Clock, e.Micros)
}

// duplicate compares identities: process, raw clock, kind with attempt or custom state, and the timestamp, which
// distinguishes the incarnations of a reused pid. An event whose timestamp was unusable has none at any receipt.
func (u *causalRules) duplicate(r *row, e *record) uint32 {
	for i := r.head; i != 0; {
		o := u.c.records.at(i)
		if o.process == e.process && o.clock == e.clock && o.kind == e.kind && o.n == e.n &&
			(o.micros == e.micros || o.flags&e.flags&retimed != 0) {
			return i
		}
		i = o.next
	}
	return 0
}

func (u *causalRules) summarize(records []*record) summary {
	u.fold.fold(records)
	s := summary{state: codePending, name: u.fold.named()}
	if sent := u.fold.source(); sent != nil {
		s.sent = sent.route
	}
	if newest := u.fold.newest(); newest != nil {
		s.state, s.process = stateOf(newest.dominant()), newest.process
		if newest.ended() {
			s.flags |= ended
		}
	}
	if u.fold.redelivered {
		s.flags |= redelivered
	}
	if u.fold.renamed(s.name) {
		s.flags |= renamed
	}
	return s
}

// named returns the route that names the task: its newest task-received's, else its task-sent's, else that of any
// event; 0 if none has a name.
func (f *causal) named() uint32 {
	for _, x := range slices.Backward(f.executions) {
		if e := x.byKind[TaskReceived]; e != nil && e.route != 0 {
			return e.route
		}
	}
	if s := f.source(); s != nil && s.route != 0 {
		return s.route
	}
	for _, x := range slices.Backward(f.executions) {
		for _, k := range dominance {
			if e := x.byKind[k]; e != nil && e.route != 0 {
				return e.route
			}
		}
	}
	return 0
}

func (u *causalRules) fill(t *Task, records []*record) {
	f, v := &u.fold, &viewer{c: u.c, t: t}
	f.fold(records)
	for i := range f.executions {
		t.Executions = append(t.Executions, v.execution(&f.executions[i]))
	}
	if name := u.c.routes.key(f.named()).name; name != "" {
		t.Name = new(name)
	}
	sent := f.source()
	newest := f.newest()
	if newest != nil {
		x := &t.Executions[len(t.Executions)-1]
		t.State, t.Result, t.Exception, t.Traceback, t.RuntimeSeconds = x.State, x.Result, x.Exception, x.Traceback, x.RuntimeSeconds
		t.Times, t.Revocation = x.Times, x.Revocation
		t.Worker = new(x.Worker)
		t.Retries = new(x.Attempt)
		if !newest.ended() {
			u.c.markOrphaned(t, newest)
		}
	}
	if sent != nil {
		v.sent(sent)
	}
	v.published(f, newest, sent)
	t.Redelivered = f.redelivered
	if newest != nil && t.StartedAt != 0 {
		from := newest.byKind[TaskReceived]
		if sent != nil && int64(sent.n) == newest.attempt && f.fits(sent, newest) { // an older one would count the attempts before
			from = sent
		}
		if from != nil {
			t.WaitedSince = from.micros
			if micros, known := u.c.waitTime(from, newest.byKind[TaskStarted]); known {
				t.WaitSeconds = new(float64(micros) / 1e6)
			}
		}
	}
}

// published fills in what publishers decided, as the attempt shown has it. What is not known of that one is taken
// from another, since a retry repeats everything but the ETA unless the task overrides it.
func (v *viewer) published(f *causal, newest *execution, sent *record) {
	if newest != nil {
		for _, k := range slices.Backward(dominance[:]) { // its task-received before all
			if e := newest.byKind[k]; e != nil {
				v.origins(e)
			}
		}
		for _, r := range slices.Backward(f.executions) {
			if e := r.byKind[TaskReceived]; e != nil && r.generation == newest.generation && r.attempt == newest.attempt {
				v.origins(e)
			}
		}
	}
	if sent != nil && !f.fits(sent, newest) {
		sent = nil
	}
	if sent != nil && (newest == nil || int64(sent.n) == newest.attempt) {
		v.origins(sent)
	}
	for _, r := range slices.Backward(f.executions) {
		if e := r.byKind[TaskReceived]; e != nil && r.generation == newest.generation {
			v.repeated(v.read(e))
		}
	}
	if sent != nil {
		v.repeated(v.read(sent))
	}
	if newest != nil && newest.generation > 0 && f.first != nil {
		v.parent(f.first)
	}
}

// parent takes the parent from the first message of a task that was replaced: replacements have others, among them
// the task itself.
func (v *viewer) parent(first *record) {
	f := v.read(first)
	v.t.ParentID = nil
	fill(&v.t.ParentID, f, FieldParentID, f.ParentID)
}

// viewer copies records into a Task.
type viewer struct {
	c *Cluster
	t *Task
	// What was read last, since each record is asked for several times.
	records [4]*record
	events  [4]Event
	reads   int
}

// read returns the fields of a record, marking the task if some of its text is missing. They are valid until the next read.
func (v *viewer) read(rec *record) *Event {
	if i := slices.Index(v.records[:], rec); i >= 0 {
		return &v.events[i]
	}
	i := v.reads % len(v.records)
	v.reads++
	e, whole := v.c.fields(v.t.ID, rec)
	v.t.Truncated = v.t.Truncated || !whole
	v.records[i], v.events[i] = rec, e
	return &v.events[i]
}

// execution copies an execution. The dominant event decides, others fill what is empty.
func (v *viewer) execution(r *execution) Execution {
	process := v.c.processes.key(r.process)
	x := Execution{
		Attempt: r.attempt, Worker: process.Hostname, PID: process.PID, Inferred: !r.received, Replaced: r.replaced,
		State: v.c.states.name(stateOf(r.dominant())),
	}
	if e := r.byKind[TaskReceived]; e != nil {
		if name := v.c.routes.key(e.route).name; name != "" {
			x.Name = new(name)
		}
	}
	for _, k := range dominance {
		e := r.event(k)
		if e == nil {
			continue
		}
		if at := x.Times.at(k); at != nil {
			*at = e.micros
		}
		f := v.read(e)
		fill(&x.Result, f, FieldResult, f.Result)
		fill(&x.Exception, f, FieldException, f.Exception)
		fill(&x.Traceback, f, FieldTraceback, f.Traceback)
		if x.RuntimeSeconds == nil && f.Has(FieldRuntime) {
			x.RuntimeSeconds = new(f.Runtime)
		}
	}
	if x.Exception != nil && x.Traceback != nil {
		x.Exception = new(exceptionRepr(*x.Exception, *x.Traceback))
	}
	if e := r.dominant(); e.kind == TaskRevoked {
		x.Revocation = new(revocationOf(e.n))
	}
	return x
}

// origins fills in what the publisher of an attempt decided, where it is still unknown.
func (v *viewer) origins(e *record) {
	f, t := v.read(e), v.t
	v.repeated(f)
	fill(&t.ETA, f, FieldETA, f.ETA)
	if t.Retries == nil && f.Has(FieldRetries) {
		t.Retries = new(f.Retries)
	}
}

// repeated fills in what every attempt has in common, where it is still unknown.
func (v *viewer) repeated(f *Event) {
	t := v.t
	fill(&t.Args, f, FieldArgs, f.Args)
	fill(&t.Kwargs, f, FieldKwargs, f.Kwargs)
	fill(&t.Expires, f, FieldExpires, f.Expires)
	fill(&t.RootID, f, FieldRootID, f.RootID)
	if f.ParentID != t.ID { // a retry calls itself its parent
		fill(&t.ParentID, f, FieldParentID, f.ParentID)
	}
}

// sent fills in the route that the task-sent names.
func (v *viewer) sent(e *record) {
	t := v.t
	t.SentAt = e.micros
	t.Client = new(v.c.processes.key(e.process).Hostname)
	if e.route == 0 {
		return
	}
	k := v.c.routes.key(e.route)
	f := v.read(e)
	fill(&t.Queue, f, FieldQueue, k.queue)
	fill(&t.Exchange, f, FieldExchange, k.exchange)
	fill(&t.RoutingKey, f, FieldRoutingKey, k.routingKey)
}

// fill sets an unknown field from one that the event had.
func fill(dst **string, e *Event, bit Fields, value string) {
	if *dst == nil && e.Has(bit) {
		*dst = new(value)
	}
}
