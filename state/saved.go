package state

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// SavedEvent is an event of a task as it is saved, with the repaired clock that it was given on receipt.
type SavedEvent struct {
	Event    Event
	Repaired int64
	Cut      bool // some of its text is missing
}

func (s *SavedEvent) flags() recordFlags {
	if s.Cut {
		return cut
	}
	return 0
}

// save encodes the events of a row, and reports whether it still has all their text.
func (c *Cluster) save(r *row) (b []byte, whole bool) { return c.saveWith(&c.codec, r) }

func (c *Cluster) saveWith(k *codec, r *row) (b []byte, whole bool) {
	whole = true
	b = make([]byte, 1, 256)
	b[0] = savedForm
	if conclusion, ok := c.concluded[r.id]; ok {
		b[0] = concludedForm
		b = appendConclusion(b, conclusion)
	}
	k.begin(c.id(r))
	w := c.walk(r)
	for rec := w.next(); rec != nil; rec = w.next() {
		s := c.event(r, rec)
		if rec.text != 0 && c.text.get(rec.text) == nil {
			whole = false
		}
		b = k.append(b, &s.Event, s.Repaired, s.Cut, rec.received != 0)
	}
	return b, whole
}

// event converts a record back into an event.
func (c *Cluster) event(r *row, rec *record) SavedEvent {
	process, id := c.processes.key(rec.process), c.id(r)
	e, whole := c.fields(id, rec)
	k := c.routes.key(rec.route)
	e.Kind, e.ID, e.Hostname, e.PID, e.Clock, e.Micros = rec.kind, id, process.Hostname, process.PID, rec.clock, rec.micros
	e.ReceivedMicros = rec.received
	e.Retimed, e.Skewed = rec.flags&retimed != 0, rec.flags&skewed != 0
	e.Name, e.Queue, e.Exchange, e.RoutingKey = k.name, k.queue, k.exchange, k.routingKey
	if rec.kind == TaskCustom {
		e.Subject = string(c.states.name(stateCode(rec.n)))
	}
	rec.restore(&e)
	return SavedEvent{Event: e, Repaired: rec.repaired, Cut: !whole}
}

// Load adds a task as it was saved. A task in memory gains the events that it lacks. Loading may evict other
// tasks, or the task itself.
func (c *Cluster) Load(id string, events []byte) error {
	err := c.LoadWithoutEviction(id, events)
	c.evict()
	return err
}

// LoadWithoutEviction is Load without evicting tasks: the task stays in memory until the next new task or save.
func (c *Cluster) LoadWithoutEviction(id string, events []byte) error {
	_, err := c.loadUntil(id, events, math.MaxInt64)
	return err
}

// LoadUntil adds a saved task as it was at an instant: without the events that were received later, and without what was
// concluded later. It reports whether any event is left; without one, nothing is added.
func (c *Cluster) LoadUntil(id string, events []byte, until int64) (bool, error) {
	known, err := c.loadUntil(id, events, until)
	c.evict()
	return known, err
}

// receipt is when the event was received, µs. Events that were saved before receipts were count as received when they were
// sent.
func (e *Event) receipt() int64 { return cmp.Or(e.ReceivedMicros, e.Micros) }

func (c *Cluster) loadUntil(id string, events []byte, until int64) (known bool, err error) {
	k, err := c.readSaved(id, events)
	if err != nil {
		return false, err
	}
	all := len(c.loaded)
	c.loaded = slices.DeleteFunc(c.loaded, func(s SavedEvent) bool { return s.Event.receipt() > until })
	if len(c.loaded) == 0 {
		return false, nil
	}
	if k != nil && (len(c.loaded) < all || k.At > until) {
		k = nil
	}
	c.load(id, k)
	return true, nil
}

// readSaved reads the events of a saved task into c.loaded, and returns what was concluded from them, nil if nothing was.
func (c *Cluster) readSaved(id string, events []byte) (k *Conclusion, err error) {
	r := &c.input
	if len(events) == 0 || !readable(events[0]) {
		return nil, fmt.Errorf("load task: %w", ErrSaved)
	}
	r.rest, r.bad = string(events[1:]), false
	if hasConclusion(events[0]) {
		k = new(r.conclusion())
	}
	r.begin(id)
	c.loaded = c.loaded[:0]
	for len(r.rest) > 0 {
		c.loaded = append(c.loaded, SavedEvent{})
		s := &c.loaded[len(c.loaded)-1]
		r.next(s)
		if r.bad || !s.Event.Kind.Task() {
			return nil, fmt.Errorf("load task: %w", ErrSaved)
		}
		s.Event.ID = id
	}
	if len(c.loaded) == 0 {
		return nil, fmt.Errorf("load task: no events: %w", ErrSaved)
	}
	return k, nil
}

// load adds the events of c.loaded to a task and shows it once. What was concluded, here or where they were saved,
// stays if it was concluded from all of them. It reports whether the task had nothing that was not loaded, and whether it had all
// of that with the same clocks.
func (c *Cluster) load(id string, k *Conclusion) (whole, same bool) {
	i, r, known := c.rowFor(id)
	c.unpack(r)
	before, equal, moved := int(r.count), 0, false
	if known {
		c.byStamp.remove(c.itemOf(i, r))
		c.tally.remove(r)
	}
	for n := range c.loaded {
		s := &c.loaded[n]
		c.RestoreClock(s.Repaired)
		rec := c.record(&s.Event, s.Repaired, s.flags())
		if i := c.rules.duplicate(r, &rec); i != 0 {
			equal++
			moved = moved || c.records.at(i).repaired != s.Repaired
			c.refresh(i, &s.Event)
			c.release(&rec)
			continue
		}
		if int(r.count) >= maxRecords {
			c.dropRecord(r)
		}
		c.append(r, &s.Event, rec)
		c.raiseStamp(r)
		c.relateAs(i, r, &s.Event)
	}
	c.summarize(r)
	if equal < len(c.loaded) { // what was concluded here was concluded without these
		c.clearConclusion(r)
	}
	if k != nil && equal == before && r.flags&concluded == 0 && !c.states.final(r.state) {
		c.setConclusion(r, *k)
	}
	r.flags |= stored
	c.pack(r)
	c.byStamp.insert(c.itemOf(i, r))
	c.tally.add(r)
	if c.lowWaterMark == nil { // what the store omits is older than what it loads, by another order than that of time
		c.evictedMicros = max(c.evictedMicros, c.position(r).Stamp.Micros)
	}
	c.version++
	return equal >= before || int(r.count) >= maxRecords, !moved
}

// refresh gives a record its text again, if it was dropped, and its receipt, if this one is earlier: the event came again
// while its task was not in memory.
func (c *Cluster) refresh(i uint32, e *Event) {
	rec := c.records.at(i)
	if e.ReceivedMicros != 0 && e.ReceivedMicros < rec.received {
		rec.received = e.ReceivedMicros
	}
	if rec.text != 0 && c.text.get(rec.text) == nil {
		rec.text = c.text.add(e)
	}
}

// SetLowWaterMark records that tasks up to a position are in the store only.
func (c *Cluster) SetLowWaterMark(p Position) {
	c.evictedMicros = max(c.evictedMicros, p.Stamp.Micros)
	if c.lowWaterMark == nil || c.lowWaterMark.Compare(p) < 0 {
		c.lowWaterMark = &p
	}
}

// LoadedAbove records that all tasks above a position are in memory, nil if all tasks are. It must not be called if one was evicted
// that had been loaded.
func (c *Cluster) LoadedAbove(p *Position) { c.lowWaterMark = p }

// storedSlack is how much older than the newest event of its task any other may be, by skewed clocks, µs.
const storedSlack = 10_000_000

// NeedsLoad reports whether the event is of a task that is not in memory and may be in the store. An event that begins a
// task and is newer than every task there is taken to be of a new one; if it is not, saving the task finds that out.
func (c *Cluster) NeedsLoad(e *Event) bool {
	if c.lowWaterMark == nil || !e.Kind.Task() {
		return false
	}
	begins := e.Kind == TaskSent || e.Kind == TaskReceived
	return (!begins || e.Micros <= c.evictedMicros+storedSlack) && c.row(e.ID) == nil
}

// Evicted returns how many tasks were evicted so far.
func (c *Cluster) Evicted() uint64 { return c.evicted }

// LowWaterMark is the newest position of a task that was evicted or never loaded, nil if all tasks are in memory.
// A task that has changed since is in memory again, but its position may be below the mark.
func (c *Cluster) LowWaterMark() *Position { return c.lowWaterMark }

// Forget drops tasks that were removed from the store, except those that have changed since they were saved.
func (c *Cluster) Forget(ids []string) {
	for _, id := range ids {
		k, _ := key(id)
		if i := c.find(k); i != 0 && c.rows.at(i).flags&(unsaved|saving) == 0 {
			c.drop(i)
			c.version++
		}
	}
}

// RestoreClock sets the receiver's clock to at least n.
func (c *Cluster) RestoreClock(n int64) { c.clock.Restore(max(n, c.clock.Value())) }
