package state

import (
	"strings"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/internal/truncate"
)

// record is one stored event of a task: 56 bytes without pointers. The records of a task are
// a chain in order of arrival.
type record struct {
	micros   int64 // sender's wall clock
	received int64 // local receipt, µs, 0 if unknown
	clock    int64 // raw, 0 if none
	repaired int64
	text     int64  // position in the text log, 0 if none
	process  uint32 // number of the sender in processes
	next     uint32 // record that arrived next, 0 at the end
	route    uint32 // number of name and route in routes, 0 if the event had neither
	kind     Kind
	flags    recordFlags
	n        uint16 // attempt of a sent or received event; state code of a custom one; Revocation.code
}

type recordFlags uint8

const (
	retimed      recordFlags = 1 << iota // micros is a receipt time
	cut                                  // some text did not fit
	ownParent                            // of a sent or received event: the task is its own parent, or
	otherParent                          // has another one
	emptySuccess                         // a task-succeeded whose result and runtime are null: it did not
	skewed                               // the sender's clock was off
)

// unmeasured are the fields that are null in the task-succeeded that gevent and eventlet workers send of a
// task that was terminated.
const unmeasured = FieldResult | FieldRuntime

// restore sets what the record itself keeps of an event, beside its text.
func (r *record) restore(e *Event) {
	switch {
	case r.flags&ownParent != 0:
		e.ParentID, e.Present = e.ID, e.Present|FieldParentID
	case r.kind == TaskRevoked:
		revocationOf(r.n).restore(e)
	case r.flags&emptySuccess != 0:
		e.Present |= unmeasured
		e.Null |= unmeasured
	}
}

// route is the name of a task and where a task-sent routed it. Other events have only the name.
type route struct {
	name, queue, exchange, routingKey string
}

// stampOf returns the stamp of a record.
func (c *Cluster) stampOf(r *record) clock.Stamp {
	return clock.Stamp{Clock: r.repaired, Micros: r.micros, Origin: origin(c.processes.key(r.process))}
}

// record makes the event's record, but for its text and place in the chain.
func (c *Cluster) record(e *Event, repaired int64, flags recordFlags) record {
	r := record{
		micros: e.Micros, received: e.ReceivedMicros, clock: e.Clock, repaired: repaired, kind: e.Kind, flags: flags,
		process: c.acquireProcess(e),
	}
	if e.Retimed {
		r.flags |= retimed
	}
	if e.Skewed {
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
	if e.Has(FieldETA) {
		r.flags |= delayed
	}
	if e.Present&inEntry != 0 {
		rec.text = c.text.add(e)
		if e.oversized() {
			rec.flags |= cut
		}
	}
	c.enchain(r, &rec)
	r.count++
}

// enchain puts a copy of a record at the end of the row's chain.
func (c *Cluster) enchain(r *row, rec *record) {
	i := c.records.alloc()
	*c.records.at(i) = *rec
	c.records.at(i).next = 0
	if r.tail == 0 {
		r.head = i
	} else {
		c.records.at(r.tail).next = i
	}
	r.tail = i
}

// chain returns the records of a row in order of arrival, in scratch memory.
func (c *Cluster) chain(r *row, scratch []*record) []*record {
	scratch = scratch[:0]
	if r.packed {
		copies := make([]record, r.count) // a packed record lasts until the next one
		w := c.walk(r)
		for i := range copies {
			copies[i] = *w.next()
			scratch = append(scratch, &copies[i])
		}
		return scratch
	}
	for i := r.head; i != 0; {
		rec := c.records.at(i)
		scratch = append(scratch, rec)
		i = rec.next
	}
	return scratch
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

// remove takes a record out of a row's chain.
func (c *Cluster) remove(r *row, victim uint32) {
	before := uint32(0)
	for i := r.head; i != victim; i = c.records.at(i).next {
		before = i
	}
	next := c.records.at(victim).next
	if before == 0 {
		r.head = next
	} else {
		c.records.at(before).next = next
	}
	if r.tail == victim {
		r.tail = before
	}
	c.free(victim)
	r.count--
}

// dropRecords takes all records out of a row.
func (c *Cluster) dropRecords(r *row) {
	w := c.walk(r)
	for rec := w.next(); rec != nil; rec = w.next() {
		c.release(rec)
	}
	c.releaseRecords(r)
}

// releaseRecords frees the memory of the records of a row, which are elsewhere or not needed.
func (c *Cluster) releaseRecords(r *row) {
	if r.packed {
		c.packs.slab(r.tail).release(r.head)
	} else {
		for i := r.head; i != 0; {
			next := c.records.at(i).next
			c.records.release(i)
			i = next
		}
	}
	r.head, r.tail, r.packed = 0, 0, false
}

func (c *Cluster) free(i uint32) {
	c.release(c.records.at(i))
	c.records.release(i)
}

// release drops the references that a discarded record holds.
func (c *Cluster) release(rec *record) {
	c.processes.release(rec.process)
	c.routes.release(rec.route)
}
