package state

import "cmp"

// Change is the effect of an event on its task.
type Change struct {
	New            bool   // the event was not known yet
	First          bool   // it was the first event of its kind of its execution
	Clock          int64  // the repaired clock that it was given
	Name, Queue    string // of its task after the event; empty if unknown
	Worker         string // that sent it, or of its task if a client did; empty if unknown
	WaitMicros     int64  // of a task-started: since the task-sent or task-received of its attempt; 0 if neither was seen, or their clocks do not let it be known
	PrefetchMicros int64  // of a task-started without an ETA: since the task-received of its worker; 0 if that was not seen
	Unstarted      Unstarted
	OffsetMicros   int64 // how far the clock of its sender is ahead of the local one; 0 if it is taken as right
}

// Apply folds one event in and returns its effect. It copies what it keeps. Events that are neither of a task nor
// of a worker change nothing.
func (c *Cluster) Apply(e *Event) Change {
	if len(e.Hostname) > maxSymbol {
		short := *e
		short.Hostname = symbol(e.Hostname)
		e = &short
	}
	c.now = max(c.now, e.ReceivedMicros)
	return c.apply(e, c.rules.stamp(e), 0)
}

// apply folds in an event with the repaired clock it was given. flags are known of it beside the event.
func (c *Cluster) apply(e *Event, repaired int64, flags recordFlags) Change {
	return c.applyAhead(e, repaired, flags, c.correctionOf(e))
}

// applyAhead is apply with how far the clock of the sender is ahead, µs.
func (c *Cluster) applyAhead(e *Event, repaired int64, flags recordFlags, ahead int64) Change {
	ch := Change{Clock: repaired, OffsetMicros: ahead}
	switch {
	case e.Kind.Task():
		if ch.OffsetMicros != 0 {
			skewed := *e
			skewed.Skewed, skewed.OffsetMicros, skewed.Present = true, ch.OffsetMicros, e.Present|FieldClockOffset
			e = &skewed
		}
		c.applyTask(e, repaired, flags, &ch)
		if e.Kind != TaskSent {
			c.noteActivity(e, repaired, ch.New)
		} else {
			c.compareClient(e)
		}
	case e.Kind.Worker():
		c.applyWorker(e, repaired)
		ch.New = true
	}
	return ch
}

// applyTask adds the event to its task and summarizes the task again.
func (c *Cluster) applyTask(e *Event, repaired int64, flags recordFlags, ch *Change) {
	i, r, known := c.rowFor(e.ID)
	rec := &c.incoming
	*rec = c.record(e, repaired, flags)
	if known {
		c.unpack(r)
		if same := c.rules.duplicate(r, rec); same != 0 {
			c.release(rec)
			c.describeKnown(ch, r, same)
			c.pack(r)
			return
		}
		c.byStamp.remove(c.itemOf(i, r))
		c.tally.remove(r)
		c.clearConclusion(r)
	}
	if int(r.count) >= maxRecords {
		c.dropRecord(r)
	}
	c.append(r, e, *rec)
	c.raiseStamp(r)
	plain := c.summarize(r)
	c.relateAs(i, r, e)
	c.markUnsaved(i, r)
	c.byStamp.insert(c.itemOf(i, r))
	c.tally.add(r)
	c.version++
	c.describe(ch, r, plain)
	c.pack(r)
	if !known {
		c.evict()
	}
}

// summarize recomputes the summary of the row, and reports whether its history is plain.
func (c *Cluster) summarize(r *row) bool {
	s, plain := c.plain(r)
	if !plain {
		c.scratch = c.chain(r, c.scratch)
		s = c.rules.summarize(c.scratch)
	}
	s.flags |= r.flags &^ folded
	if s.worker = r.worker; s.process != r.process || s.process == 0 {
		s.worker = 0
		if s.process != 0 {
			s.worker = c.hosts.acquire(c.processes.key(s.process).Hostname)
		}
		c.hosts.release(r.worker)
	}
	r.summary = s
	return plain
}

// describe sets ch to the effect of the newest record of a row.
func (c *Cluster) describe(ch *Change, r *row, plain bool) {
	ch.New, ch.First = true, plain || c.firstOfKind(r, r.tail)
	ch.Name, ch.Queue = c.routes.key(r.name).name, c.routes.key(r.sent).queue
	switch rec := c.records.at(r.tail); {
	case rec.kind != TaskSent && rec.process != 0: // which may be another than that of the task: an event may come late
		ch.Worker = c.processes.key(rec.process).Hostname
	case r.worker != 0:
		ch.Worker = c.hosts.key(r.worker)
	}
	if !plain {
		ch.Unstarted = c.unstartedBy(r)
	}
	c.describeWait(ch, r, r.tail)
}

// describeKnown sets ch to the effect of a record by those before it, as when it was the newest: events of a journal, whose tasks have
// been saved since, are counted with it.
func (c *Cluster) describeKnown(ch *Change, r *row, known uint32) {
	ch.First = c.firstOfKind(r, known)
	for i := r.head; ; i = c.records.at(i).next {
		rec := c.records.at(i)
		if route := c.routes.key(rec.route); rec.route != 0 {
			ch.Name = cmp.Or(route.name, ch.Name)
			if rec.kind == TaskSent {
				ch.Queue = route.queue
			}
		}
		if rec.kind != TaskSent {
			ch.Worker = c.processes.key(rec.process).Hostname
		}
		if i == known {
			break
		}
	}
	c.describeWait(ch, r, known)
}

// describeWait sets how long a record waited that tells of a start, by those before it.
func (c *Cluster) describeWait(ch *Change, r *row, start uint32) {
	e := c.records.at(start)
	if e.kind != TaskStarted {
		return
	}
	var sent, received *record
	for i := r.head; i != start; i = c.records.at(i).next {
		o := c.records.at(i)
		switch {
		case o.kind == TaskSent && (sent == nil || o.n > sent.n):
			sent = o
		case o.kind == TaskReceived && o.process == e.process && (received == nil || o.micros > received.micros):
			received = o
		}
	}
	if received != nil && r.flags&delayed == 0 {
		micros, _ := c.waitTime(received, e)
		ch.PrefetchMicros = max(micros, 1)
	}
	from := received
	if sent != nil && (received == nil || sent.n == received.n) {
		from = sent
	}
	if from == nil {
		return
	}
	if micros, known := c.waitTime(from, e); known {
		ch.WaitMicros = max(micros, 1)
	}
}

// firstOfKind reports whether a record is the first of its kind of its execution. Celery 5.7 reports a hard time limit
// twice; gevent also reports a terminated task as succeeded.
func (c *Cluster) firstOfKind(r *row, i uint32) bool {
	e := c.records.at(i)
	if e.flags&emptySuccess != 0 {
		return false
	}
	said := false
	c.scratch = c.scratch[:0]
	for o := r.head; o != i; o = c.records.at(o).next {
		rec := c.records.at(o)
		c.scratch = append(c.scratch, rec)
		said = said || rec.kind == e.kind && rec.process == e.process
	}
	u, causal := c.rules.(*causalRules)
	if !said || !causal || e.kind == TaskReceived || e.kind == TaskSent || e.kind == TaskCustom {
		return true
	}
	had := u.fold.countWith(c.scratch, e.kind)
	c.scratch = append(c.scratch, e)
	return u.fold.countWith(c.scratch, e.kind) > had
}
