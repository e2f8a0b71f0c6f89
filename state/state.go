// Package state folds Celery events into a model of a cluster: tasks with their executions, workers, counts, and
// queries on them. It does no I/O, reads no wall clock, starts no goroutine and logs nothing; whoever owns a
// Cluster locks it.
package state

import (
	"math"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/internal/truncate"
)

// Options of a Cluster. The zero value is useful.
type Options struct {
	MaxTasks int   // tasks kept in memory; 0 means 1,000,000
	MaxText  int64 // bytes of args, results and tracebacks kept; 0 means 512 MiB
	Rules    Rules // zero value: Causal
	Track    bool  // tasks are saved to a store: TakeUnsaved returns those to save, and only saved tasks are evicted
}

// Rules chooses how the events of a task become its state.
type Rules uint8

// The rule sets of Umbel. Causal makes the state of a task a function of the set of its events;
// Celery repeats celery.events.state event for event, oddities included.
const (
	Causal Rules = iota
	Celery
)

// rules is the implementation of a rule set.
type rules interface {
	// stamp returns the repaired clock of an event.
	stamp(e *Event) int64
	// duplicate returns the record of the task that is the same event, 0 if there is none.
	duplicate(r *row, e *record) uint32
	// summarize folds the records of a task, in order of arrival, into what its row shows.
	summarize(records []*record) summary
	// fill folds the records of a task into a full copy of it.
	fill(t *Task, records []*record)
}

// Bounds of what senders of events can make grow. Beyond a bound, new keys become «(other)».
const (
	defaultMaxTasks = 1_000_000
	defaultMaxText  = 512 << 20
	maxRoutes       = 50_000
	maxHosts        = 50_000
	maxProcesses    = 100_000
	maxStates       = 1_000
	maxWorkers      = 5_000
	maxRecords      = 64  // events kept of one task; beyond it, old custom ones make room
	maxSymbol       = 512 // bytes of a name
	otherKey        = "(other)"
)

// Cluster is the model of one Celery cluster. It is not safe for concurrent use: one writer calls Apply, Expire
// and Shift; readers share a lock with it.
type Cluster struct {
	options Options
	rules   rules
	clock   clock.Receiver
	version uint64
	now     int64 // newest local time, µs

	index     map[taskKey]uint32
	rows      slab[row]
	records   slab[record]
	relations slab[relation]
	families  map[taskKey]uint32 // parent → first child
	hashedIDs map[taskKey]string // ids that are no UUIDs
	byStamp   taskList
	text      *textLog

	processes *table[clock.Process]
	hosts     *table[string]
	routes    *table[route]
	states    stateNames
	workers   map[string]*worker
	forgotten map[string]bool // names of forgotten workers that may still be in the store

	tally   tally
	evicted uint64
	dropped uint64 // events dropped because their task had too many

	concluded map[taskKey]Conclusion // of rows with a flag of concluded
	absent    map[taskKey]absence    // unfinished tasks that their worker did not list in its last inspection
	reviewed  int64                  // clock of the newest task that the last Reconcile looked at
	listed    map[taskKey]int64      // tasks that events do not place on the worker that listed them: when, µs

	unsaved       fifo     // rows that changed since they were taken to be saved, longest first
	saving        []uint32 // rows taken to be saved
	lowWaterMark  *Position
	evictedMicros int64 // at least the greatest time of a task that is in the store only
	evictAbove    int   // number of tasks above which to look for some to evict

	scratch   []*record
	textEntry []byte
	codec     codec
	input     savedReader
	loaded    []savedEvent
}

// New returns an empty cluster.
func New(o Options) *Cluster {
	if o.MaxTasks <= 0 {
		o.MaxTasks = defaultMaxTasks
	}
	if o.MaxText <= 0 {
		o.MaxText = defaultMaxText
	}
	c := &Cluster{
		options:    o,
		clock:      clock.Receiver{MaxProcesses: maxProcesses},
		index:      make(map[taskKey]uint32),
		families:   make(map[taskKey]uint32),
		hashedIDs:  make(map[taskKey]string),
		text:       newTextLog(o.MaxText),
		processes:  newTable(maxProcesses, clock.Process{Hostname: otherKey}, cloneProcess),
		hosts:      newTable(maxHosts, otherKey, strings.Clone),
		routes:     newTable(maxRoutes, route{name: otherKey}, cloneRoute),
		states:     newStateNames(),
		workers:    make(map[string]*worker),
		forgotten:  make(map[string]bool),
		evictAbove: o.MaxTasks,

		concluded: make(map[taskKey]Conclusion),
		absent:    make(map[taskKey]absence),
		listed:    make(map[taskKey]int64),
	}
	c.byStamp.less = c.rowBefore
	if o.Rules == Celery {
		c.rules = &celeryRules{c: c}
	} else {
		c.rules = &causalRules{c: c, fold: causal{processes: c.processes}}
	}
	return c
}

func cloneProcess(l clock.Process) clock.Process {
	l.Hostname = strings.Clone(l.Hostname)
	return l
}

func cloneRoute(c route) route {
	return route{strings.Clone(c.name), strings.Clone(c.queue), strings.Clone(c.exchange), strings.Clone(c.routingKey)}
}

// rowBefore breaks ties of the clock in the order of the list.
func (c *Cluster) rowBefore(a, b uint32) bool {
	return c.position(c.rows.at(a)).Compare(c.position(c.rows.at(b))) < 0
}

// Version rises with every change.
func (c *Cluster) Version() uint64 { return c.version }

// Clock returns the receiver's Lamport clock.
func (c *Cluster) Clock() int64 { return c.clock.Value() }

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
	ch := Change{Clock: repaired, OffsetMicros: c.offsetOf(e)}
	switch {
	case e.Kind.Task():
		c.applyTask(e, repaired, flags, &ch)
		if e.Kind != TaskSent {
			c.noteActivity(e, repaired)
		}
	case e.Kind.Worker():
		c.applyWorker(e, repaired)
		ch.New = true
	}
	return ch
}

// rowFor returns the row of a task, a new one if it is not known.
func (c *Cluster) rowFor(id string) (i uint32, r *row, known bool) {
	k, digested := key(id)
	i, known = c.index[k]
	if !known {
		i = c.rows.alloc()
		r = c.rows.at(i)
		r.id = k
		if digested {
			r.flags |= hashedID
			c.hashedIDs[k] = strings.Clone(id)
		}
		c.index[k] = i
	}
	return i, c.rows.at(i), known
}

// applyTask adds the event to its task and summarizes the task again.
func (c *Cluster) applyTask(e *Event, repaired int64, flags recordFlags, ch *Change) {
	i, r, known := c.rowFor(e.ID)
	rec := c.record(e, repaired, flags)
	if known {
		if same := c.rules.duplicate(r, &rec); same != 0 {
			c.release(&rec)
			ch.First = c.firstOfKind(r, same)
			return
		}
	}
	if known {
		c.byStamp.remove(c.itemOf(i, r))
		c.tally.remove(r)
		c.clearConclusion(r)
	}
	if int(r.count) >= maxRecords {
		c.dropRecord(r)
	}
	c.append(r, e, rec)
	r.receivedAt = uint32(min(max(e.ReceivedMicros/1e6, 0), math.MaxUint32))
	c.raiseStamp(r)
	c.summarize(r)
	c.relateAs(i, r, e)
	c.markUnsaved(i, r)
	c.byStamp.insert(c.itemOf(i, r))
	c.tally.add(r)
	c.version++
	c.describe(ch, r)
	if !known {
		c.evict()
	}
}

// release drops the references that a discarded record holds.
func (c *Cluster) release(rec *record) {
	c.processes.release(rec.process)
	c.routes.release(rec.route)
}

// describe sets ch to the effect of the newest record of a row.
func (c *Cluster) describe(ch *Change, r *row) {
	ch.New, ch.First = true, c.firstOfKind(r, r.tail)
	ch.Name, ch.Queue = c.routes.key(r.name).name, c.routes.key(r.sent).queue
	if r.worker != 0 {
		ch.Worker = c.hosts.key(r.worker)
	}
	e := c.records.at(r.tail)
	if e.kind != TaskStarted {
		return
	}
	var sent, received *record
	for i := r.head; i != 0; {
		o := c.records.at(i)
		switch {
		case o.kind == TaskSent && (sent == nil || o.n > sent.n):
			sent = o
		case o.kind == TaskReceived && o.process == e.process && (received == nil || o.micros > received.micros):
			received = o
		}
		i = o.next
	}
	from := received
	if sent != nil && (received == nil || sent.n == received.n) {
		from = sent
	}
	if from == nil {
		return
	}
	if micros, known := waitTime(from, e); known {
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

// record makes the event's record, but for its text and place in the chain.
func (c *Cluster) record(e *Event, repaired int64, flags recordFlags) record {
	r := record{
		micros: e.Micros, clock: e.Clock, repaired: repaired, kind: e.Kind, flags: flags,
		process: c.processes.acquire(e.process()),
	}
	if e.Retimed {
		r.flags |= retimed
	}
	if e.Skewed || c.skewed(e) {
		r.flags |= skewed
	}
	switch {
	case e.Kind == TaskSent, e.Kind == TaskReceived:
		r.n = uint16(min(max(e.Retries, 0), 1<<16-1))
		switch {
		case !e.Has(FieldParentID):
		case e.ParentID == e.ID:
			r.flags |= ownParent
		default:
			r.flags |= otherParent
		}
	case e.Kind == TaskCustom:
		r.n = uint16(c.states.code(customState(e.Subject)))
	case e.Kind == TaskRevoked:
		r.n = e.revocation().code()
	case e.Kind == TaskSucceeded && e.Null&unmeasured == unmeasured:
		r.flags |= emptySuccess
	}
	if e.Present&^e.Null&(FieldName|FieldQueue|FieldExchange|FieldRoutingKey) != 0 {
		k := route{name: symbol(e.Name)}
		if e.Kind == TaskSent {
			k.queue, k.exchange, k.routingKey = symbol(e.Queue), symbol(e.Exchange), symbol(e.RoutingKey)
		}
		if k != (route{}) {
			r.route = c.routes.acquire(k)
		}
	}
	return r
}

// symbol bounds the length of a name.
func symbol(s string) string {
	return truncate.Bytes(s, maxSymbol)
}

// customState is the state that a custom event names.
func customState(subject string) State { return State(strings.ToUpper(symbol(subject))) }

// append stores the record, with the event's text, at the end of the row's chain.
func (c *Cluster) append(r *row, e *Event, rec record) {
	if e.Has(FieldExpires) {
		r.flags |= expiring
	}
	if e.Present&inEntry != 0 {
		c.textEntry = appendEntry(c.textEntry[:0], e)
		rec.text = c.text.add(c.textEntry)
		if e.oversized() {
			rec.flags |= cut
		}
	}
	i := c.records.alloc()
	*c.records.at(i) = rec
	if r.tail == 0 {
		r.head = i
	} else {
		c.records.at(r.tail).next = i
	}
	r.tail = i
	r.count++
}

// dropRecord drops a record of a task that has too many: the oldest custom one, else its oldest after the first.
func (c *Cluster) dropRecord(r *row) {
	victim := uint32(0)
	for i := c.records.at(r.head).next; i != 0; i = c.records.at(i).next {
		if victim == 0 || c.records.at(i).kind == TaskCustom {
			victim = i
		}
		if c.records.at(i).kind == TaskCustom {
			break
		}
	}
	c.remove(r, victim)
	c.dropped++
}

func (c *Cluster) free(i uint32) {
	c.release(c.records.at(i))
	c.records.release(i)
}

// chain returns the records of a row in order of arrival, in scratch memory.
func (c *Cluster) chain(r *row, scratch []*record) []*record {
	scratch = scratch[:0]
	for i := r.head; i != 0; {
		rec := c.records.at(i)
		scratch = append(scratch, rec)
		i = rec.next
	}
	return scratch
}

// summarize recomputes the summary of the row.
func (c *Cluster) summarize(r *row) {
	c.scratch = c.chain(r, c.scratch)
	kept, worker := r.flags&^folded, r.worker
	r.summary = c.rules.summarize(c.scratch)
	r.flags |= kept
	r.worker = 0
	if r.process != 0 {
		r.worker = c.hosts.acquire(c.processes.key(r.process).Hostname)
	}
	c.hosts.release(worker)
}

// raiseStamp gives the row the stamp of its newest record, if that is later than its own.
func (c *Cluster) raiseStamp(r *row) {
	if newest := c.records.at(r.tail); r.origin == 0 || c.after(newest, r) {
		c.processes.retain(newest.process)
		c.processes.release(r.origin)
		r.clock, r.micros, r.origin = newest.repaired, newest.micros, newest.process
	}
}

// relateAs links the task to its root and parent as the event names them.
func (c *Cluster) relateAs(i uint32, r *row, e *Event) {
	var root, parent taskKey
	if e.Has(FieldRootID) {
		root, _ = key(e.RootID)
	}
	if e.Has(FieldParentID) {
		parent, _ = key(e.ParentID)
	}
	c.relate(i, r, root, parent)
}

// after reports whether the record's stamp is above the row's.
func (c *Cluster) after(rec *record, r *row) bool {
	if rec.repaired != r.clock {
		return rec.repaired > r.clock
	}
	return c.stampOf(rec).Compare(c.stamp(r)) > 0
}

func (c *Cluster) stamp(r *row) clock.Stamp {
	return clock.Stamp{Clock: r.clock, Micros: r.micros, Origin: origin(c.processes.key(r.origin))}
}

// origin names a process as Celery does: hostname.pid, or a client's hostname alone.
func origin(l clock.Process) string {
	if l.PID == 0 {
		return l.Hostname
	}
	return l.Hostname + "." + strconv.FormatInt(l.PID, 10)
}

// id returns a row's task id as it was sent.
func (c *Cluster) id(r *row) string {
	if r.flags&hashedID != 0 {
		return c.hashedIDs[r.id]
	}
	return r.id.uuid()
}

// itemOf is the row's place in the list, with what filters need.
func (c *Cluster) itemOf(i uint32, r *row) listItem {
	return listItem{clock: r.clock, row: i, name: r.name, worker: r.worker, state: r.state, flags: r.flags}
}
