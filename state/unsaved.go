package state

import (
	"cmp"
	"math"
	"slices"
)

// Unsaved is a task that has changed since it was last saved.
type Unsaved struct {
	View   Task
	Events []byte // all its events
	Stored bool   // it was saved before, and Events has every event saved then
	// FirstReceipt and ReceivedAt are the local receipts of its first and its newest event, µs since 1970 UTC, 0 if unknown.
	FirstReceipt, ReceivedAt int64
}

// Unsaved returns the number of tasks that have changed since they were last saved, including those being saved.
func (c *Cluster) Unsaved() int { return c.unsaved.size() + len(c.saving) }

// HasUnsaved reports whether a task is in memory with what is not saved yet.
func (c *Cluster) HasUnsaved(id string) bool {
	k, _ := key(id)
	i := c.find(k)
	return i != 0 && c.rows.at(i).flags&(unsaved|saving) != 0
}

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
		u := Unsaved{View: c.task(r), Stored: r.flags&stored != 0}
		u.FirstReceipt, u.ReceivedAt = c.receipts(r)
		var whole bool
		u.Events, whole = c.save(r)
		u.Stored = u.Stored && whole
		list = append(list, u)
	}
	return list
}

// receipts returns the first and the newest receipt of the records of a row, µs, 0 if none is known. Records without one
// count as received when they were sent.
func (c *Cluster) receipts(r *row) (first, last int64) {
	first = math.MaxInt64
	w := c.walk(r)
	for rec := w.next(); rec != nil; rec = w.next() {
		first, last = min(first, cmp.Or(rec.received, rec.micros)), max(last, rec.received)
	}
	if last == 0 {
		return 0, 0
	}
	return min(first, last), last
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

// setFlags clears and sets flags of a row, in its list item too.
func (c *Cluster) setFlags(i uint32, clear, set rowFlags) {
	r := c.rows.at(i)
	r.flags = r.flags&^clear | set
	c.byStamp.update(c.itemOf(i, r))
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

// UnsavedEvents returns the events, encoded, of the tasks that have changed since they were saved, at most n.
func (c *Cluster) UnsavedEvents(n int) map[string][]byte {
	n = min(n, c.Unsaved())
	all := make(map[string][]byte, n)
	var k codec // readers share the lock
	for _, rows := range [][]uint32{c.saving, c.unsaved.rows[c.unsaved.head:]} {
		for _, i := range rows {
			if len(all) >= n {
				return all
			}
			r := c.rows.at(i)
			all[c.id(r)], _ = c.saveWith(&k, r)
		}
	}
	return all
}

// UnsavedOf returns the ids of at most n tasks of a root, its own included, that have changed since they were saved.
func (c *Cluster) UnsavedOf(root string, n int) []string {
	k, _ := key(root)
	var ids []string
	for _, rows := range [][]uint32{c.saving, c.unsaved.rows[c.unsaved.head:]} {
		for _, i := range rows {
			r := c.rows.at(i)
			if len(ids) < n && (r.id == k || r.relation != 0 && c.relations.at(r.relation).root == k) {
				ids = append(ids, c.id(r))
			}
		}
	}
	return ids
}

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
