package state

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Unsaved is a task that has changed since it was last saved.
type Unsaved struct {
	View       Task
	Events     []byte // all its events
	Stored     bool   // it was saved before, and Events has every event saved then
	ReceivedAt int64  // local receipt of its newest event, µs since 1970 UTC, to the second; 0 if none came since it was loaded
}

// Change is the effect of an event on its task.
type Change struct {
	New                 bool   // the event was not known yet
	First               bool   // it was the first event of its kind of its execution
	Clock               int64  // the repaired clock that it was given
	Name, Worker, Queue string // of its task after the event; empty if unknown
	WaitMicros          int64  // of a task-started: since the task-sent or task-received of its attempt; 0 if neither was seen, or their clocks do not let it be known
	OffsetMicros        int64  // how far the clock of the worker that sent it is ahead of the local one; 0 if at most MaxOffset or unknown
}

// savedEvent is an event of a task with the repaired clock that it was given on receipt.
type savedEvent struct {
	Event    Event
	Repaired int64
	Cut      bool // some of its text is gone
}

func (s *savedEvent) flags() recordFlags {
	if s.Cut {
		return cut
	}
	return 0
}

// AppendEvent appends e, with the repaired clock it was given, in the form that Replay reads: the form's
// number, the id as a text, then the event.
func AppendEvent(b []byte, e *Event, repaired int64) []byte {
	var c codec
	b = append(b, savedForm)
	b = c.appendText(b, e.ID)
	c.begin(e.ID)
	return c.append(b, e, repaired, e.oversized(), true)
}

// Journal returns the events of a saved task in the form that Replay reads.
func Journal(id string, events []byte) (journal []byte, err error) {
	if len(events) < 2 || events[0] != savedForm {
		return nil, fmt.Errorf("read task: %w", ErrSaved)
	}
	r := savedReader{byteReader: byteReader[string]{rest: string(events[1:])}}
	r.begin(id)
	for len(r.rest) > 0 {
		var s savedEvent
		if r.next(&s); r.bad || !s.Event.Kind.Task() {
			return nil, fmt.Errorf("read task: %w", ErrSaved)
		}
		s.Event.ID = id
		journal = AppendEvent(journal, &s.Event, s.Repaired)
	}
	return journal, nil
}

// Replay folds in events that AppendEvent wrote, so that events that are known already change nothing, and yields
// each with its effect. Before an event that NeedsLoad, it calls load, if that is not nil, with the id of the task. Events
// before the first that cannot be read are folded in beside the error.
func (c *Cluster) Replay(journal []byte, load func(id string), yield func(*Event, Change)) error {
	r := savedReader{byteReader: byteReader[string]{rest: string(journal)}}
	var s savedEvent
	for len(r.rest) > 0 {
		if form := r.byte(); !readable(form) || form == concludedForm {
			return fmt.Errorf("replay journal: %w", ErrSaved)
		}
		id := r.sharedText()
		r.begin(id)
		r.next(&s)
		if r.bad {
			return fmt.Errorf("replay journal: %w", ErrSaved)
		}
		s.Event.ID = id
		if load != nil && c.NeedsLoad(&s.Event) {
			load(id)
		}
		c.RestoreClock(s.Repaired)
		yield(&s.Event, c.apply(&s.Event, s.Repaired, s.flags()))
	}
	return nil
}

// Unsaved returns the number of tasks that have changed since they were last saved, including those being saved.
func (c *Cluster) Unsaved() int { return c.unsaved.size() + len(c.saving) }

// TakeUnsaved returns the n tasks that have waited longest to be saved. They count as being saved, and are not
// evicted, until Saved is called with the outcome.
func (c *Cluster) TakeUnsaved(n int) []Unsaved {
	n = min(n, c.unsaved.size())
	list := make([]Unsaved, 0, n)
	for range n {
		i := c.unsaved.pop()
		c.setFlags(i, unsaved, saving)
		c.saving = append(c.saving, i)
		r := c.rows.at(i)
		u := Unsaved{View: c.task(r), Stored: r.flags&stored != 0, ReceivedAt: int64(r.receivedAt) * 1e6}
		var whole bool
		u.Events, whole = c.save(r)
		u.Stored = u.Stored && whole
		list = append(list, u)
	}
	return list
}

// setFlags clears and sets flags of a row, in its list item too.
func (c *Cluster) setFlags(i uint32, clear, set rowFlags) {
	r := c.rows.at(i)
	r.flags = r.flags&^clear | set
	c.byStamp.update(c.itemOf(i, r))
}

// save encodes the events of a row, and reports whether it still has all their text.
func (c *Cluster) save(r *row) (b []byte, whole bool) {
	whole = true
	b = make([]byte, 1, 256)
	b[0] = savedForm
	if k, ok := c.concluded[r.id]; ok {
		b[0] = concludedForm
		b = appendConclusion(b, k)
	}
	c.codec.begin(c.id(r))
	for i := r.head; i != 0; {
		rec := c.records.at(i)
		s := c.event(r, rec)
		if rec.text != 0 && c.text.get(rec.text) == nil {
			whole = false
		}
		b = c.codec.append(b, &s.Event, s.Repaired, s.Cut, false)
		i = rec.next
	}
	return b, whole
}

// Saved ends what TakeUnsaved began: the tasks are saved or, if ok is false, are first in line to be saved again.
// Those in known were not written, since the store has events of them that may be missing here; these events are
// merged in.
func (c *Cluster) Saved(ok bool, known map[string][]byte) error {
	var failed error
	again := c.saving[:0]
	for _, i := range c.saving {
		r := c.rows.at(i)
		var events []byte
		if ok && len(known) > 0 {
			events = known[c.id(r)]
		}
		switch {
		case !ok || events != nil:
			if r.flags&unsaved == 0 {
				again = append(again, i)
			}
			c.setFlags(i, saving, unsaved)
		default:
			c.setFlags(i, saving, stored)
		}
		if events != nil {
			if err := c.Load(c.id(r), events); err != nil {
				failed = err // it is written over next time: what cannot be read cannot be kept
				c.setFlags(i, 0, stored)
			}
		}
	}
	c.unsaved.unpop(again)
	c.saving = c.saving[:0]
	c.evictAbove = c.options.MaxTasks
	c.evict()
	return failed
}

// markUnsaved notes that a row is to be saved.
func (c *Cluster) markUnsaved(i uint32, r *row) {
	if c.options.Track && r.flags&unsaved == 0 {
		r.flags |= unsaved
		c.unsaved.push(i)
	}
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
	r := &c.input
	if len(events) == 0 || !readable(events[0]) {
		return fmt.Errorf("load task: %w", ErrSaved)
	}
	r.rest, r.bad = string(events[1:]), false
	var k *Conclusion
	if events[0] == concludedForm {
		k = new(r.conclusion())
	}
	r.begin(id)
	c.loaded = c.loaded[:0]
	for len(r.rest) > 0 {
		c.loaded = append(c.loaded, savedEvent{})
		s := &c.loaded[len(c.loaded)-1]
		r.next(s)
		if r.bad || !s.Event.Kind.Task() {
			return fmt.Errorf("load task: %w", ErrSaved)
		}
		s.Event.ID = id
	}
	if len(c.loaded) == 0 {
		return fmt.Errorf("load task: no events: %w", ErrSaved)
	}
	c.load(id, k)
	return nil
}

// load adds the events of c.loaded to a task and shows it once. What was concluded, here or where they were saved,
// stays if it was concluded from all of them.
func (c *Cluster) load(id string, k *Conclusion) {
	i, r, known := c.rowFor(id)
	before, same := int(r.count), 0
	if known {
		c.byStamp.remove(c.itemOf(i, r))
		c.tally.remove(r)
	}
	for n := range c.loaded {
		s := &c.loaded[n]
		c.RestoreClock(s.Repaired)
		rec := c.record(&s.Event, s.Repaired, s.flags())
		if i := c.rules.duplicate(r, &rec); i != 0 {
			same++
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
	if same < len(c.loaded) { // what was concluded here did not know these
		c.clearConclusion(r)
	}
	if k != nil && same == before && r.flags&concluded == 0 && !c.states.final(r.state) {
		c.setConclusion(r, *k)
	}
	r.flags |= stored
	c.byStamp.insert(c.itemOf(i, r))
	c.tally.add(r)
	if c.lowWaterMark == nil { // what the store omits is older than what it loads, by another order than that of time
		c.evictedMicros = max(c.evictedMicros, c.position(r).Stamp.Micros)
	}
	c.version++
}

// refresh gives a record its text again, if that is gone.
func (c *Cluster) refresh(i uint32, e *Event) {
	if rec := c.records.at(i); rec.text != 0 && c.text.get(rec.text) == nil {
		c.textEntry = appendEntry(c.textEntry[:0], e)
		rec.text = c.text.add(c.textEntry)
	}
}

// SetLowWaterMark says that tasks up to a position are in the store only.
func (c *Cluster) SetLowWaterMark(p Position) {
	c.evictedMicros = max(c.evictedMicros, p.Stamp.Micros)
	if c.lowWaterMark == nil || c.lowWaterMark.Compare(p) < 0 {
		c.lowWaterMark = &p
	}
}

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

// LowWaterMark is the newest position of a task that was evicted or never loaded, nil if all tasks are in memory.
// A task that has changed since is in memory again, but its position may be below the mark.
func (c *Cluster) LowWaterMark() *Position { return c.lowWaterMark }

// Forget drops tasks that were removed from the store, except those that have changed since they were saved.
func (c *Cluster) Forget(ids []string) {
	for _, id := range ids {
		k, _ := key(id)
		if i, ok := c.index[k]; ok && c.rows.at(i).flags&(unsaved|saving) == 0 {
			c.drop(i)
			c.version++
		}
	}
}

// Changed reports whether the task is in memory and has changed since it was saved.
func (c *Cluster) Changed(id string) bool {
	r := c.row(id)
	return r != nil && r.flags&(unsaved|saving) != 0
}

// UnsavedTasks returns copies of the n tasks that have changed since they were saved which follow from in
// the list, towards older ones or newer ones; nil is the newest, or oldest, end.
func (c *Cluster) UnsavedTasks(from *Position, newer bool, n int) []Task {
	chunk, i := c.place(Query{From: from, Newer: newer})
	var list []Task
	visit := func(e *listItem) {
		if e.flags&(unsaved|saving) != 0 && len(list) < n {
			list = append(list, c.task(c.rows.at(e.row)))
		}
	}
	left := c.Unsaved()
	if newer {
		c.byStamp.oldest(chunk, i, func(entries []listItem) bool {
			for n := range entries {
				visit(&entries[n])
			}
			return len(list) < min(n, left)
		})
		return list
	}
	c.byStamp.newest(chunk, i, func(entries []listItem) bool {
		for n := len(entries) - 1; n >= 0; n-- {
			visit(&entries[n])
		}
		return len(list) < min(n, left)
	})
	return list
}

// SaveWorkers calls f with every worker that changed since it was last saved, as JSON, and with nil for those that
// were forgotten since.
func (c *Cluster) SaveWorkers(f func(name string, saved []byte)) error {
	for _, w := range c.workers {
		if !w.changed {
			continue
		}
		b, err := json.Marshal(w.saved())
		if err != nil {
			return fmt.Errorf("save worker: %w", err)
		}
		w.changed = false
		f(w.name, b)
	}
	for name := range c.forgotten {
		f(name, nil)
	}
	clear(c.forgotten)
	return nil
}

// LoadWorker merges in a worker as it was saved.
func (c *Cluster) LoadWorker(saved []byte) error {
	var s savedWorker
	if err := json.Unmarshal(saved, &s); err != nil {
		return fmt.Errorf("load worker: %w", err)
	}
	if len(s.Incarnations) == 0 {
		return fmt.Errorf("load worker: no process: %w", ErrSaved)
	}
	c.mergeWorker(s)
	c.workers[symbol(s.Name)].changed = false
	return nil
}

// savedWorker is a worker as it is saved. JSON names are those of the first version.
type savedWorker struct {
	Name          string
	Incarnations  []incarnation `json:"Lives"`
	Dropped       int64
	LastSeen      int64 `json:"Heard"`
	LastHeartbeat int64 `json:"Beat"`
	Clock         int64
	Offset        offset
	LastReport    *LastReport `json:",omitempty"`
}

// saved copies what is saved of a worker. JSON has no number that is not finite.
func (w *worker) saved() savedWorker {
	s := savedWorker{w.name, slices.Clone(w.incarnations), w.dropped, w.lastSeen, w.lastHeartbeat, w.clock, w.offset, w.lastReport}
	for i := range s.Incarnations {
		r := &s.Incarnations[i].Report
		if finite(r.Freq) != r.Freq {
			r.Freq, r.Has = 0, r.Has&^FieldFreq
		}
		for n, l := range r.Load {
			r.Load[n] = finite(l)
		}
	}
	return s
}

func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// RestoreClock sets the receiver's clock to at least n.
func (c *Cluster) RestoreClock(n int64) { c.clock.Restore(max(n, c.clock.Value())) }

// fifo is a queue of rows.
type fifo struct {
	rows []uint32
	head int
}

func (q *fifo) size() int { return len(q.rows) - q.head }

func (q *fifo) push(i uint32) {
	if q.head > 1024 && q.head > len(q.rows)/2 {
		q.rows = append(q.rows[:0], q.rows[q.head:]...)
		q.head = 0
	}
	q.rows = append(q.rows, i)
}

func (q *fifo) pop() uint32 {
	i := q.rows[q.head]
	q.head++
	return i
}

// unpop puts rows back before all others.
func (q *fifo) unpop(rows []uint32) {
	if len(rows) == 0 {
		return
	}
	q.rows = slices.Concat(rows, q.rows[q.head:])
	q.head = 0
}
