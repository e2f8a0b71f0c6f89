package state

import (
	"cmp"
	"slices"

	"github.com/umbelhq/umbel/clock"
)

// Unstarted says what an event changes about executions of its task on its process that were received, since the first attempt,
// and have succeeded or retried, and that have not started as far as is known: their task-started is missing. It takes for granted
// that no process has one message twice at a time. Other ends prove nothing: a task may fail or be revoked without having started.
type Unstarted struct {
	Count         int64 // how many more there are: −1 if a late task-started has come
	After, Before int64 // raw clocks of the process between which it is missing, exclusive
	// The timestamps of the events with those clocks, µs since 1970 UTC by the sender's wall clock.
	AfterMicros, BeforeMicros int64
}

// unstartedBy returns what the newest record of a row changes.
func (c *Cluster) unstartedBy(r *row) (u Unstarted) {
	e := c.records.at(r.tail)
	if e.clock == 0 || int(r.count) >= maxRecords { // some may have been dropped
		return u
	}
	switch e.kind {
	case TaskReceived, TaskStarted, TaskSucceeded, TaskRetried:
	default:
		return u
	}
	life := c.life(r, e)
	if len(life) < 2 {
		return u
	}
	missing, first, last := unstarted(life)
	before, _, _ := unstarted(slices.DeleteFunc(life, func(o *record) bool { return o == e }))
	u.Count = missing - before
	if u.Count > 0 {
		u.After, u.AfterMicros, u.Before, u.BeforeMicros = first.clock, first.micros, last.clock, last.micros
	}
	return u
}

// life returns the records of a row that are of the life of a process that e is of: a life ends where the clock drops while time
// goes on. They are in scratch memory.
func (c *Cluster) life(r *row, e *record) []*record {
	list := c.scratch[:0]
	for i := r.head; i != 0; {
		o := c.records.at(i)
		if o.process == e.process {
			list = append(list, o)
		}
		i = o.next
	}
	c.scratch = list
	slices.SortFunc(list, func(a, b *record) int { return cmp.Or(cmp.Compare(a.micros, b.micros), cmp.Compare(a.clock, b.clock)) })
	from := slices.Index(list, e)
	to := from + 1
	for from > 0 && !dropsAfter(list[from-1], list[from:to]) {
		from--
	}
	for to < len(list) && !slices.ContainsFunc(list[from:to], func(o *record) bool { return dropsAfter(o, list[to:to+1]) }) {
		to++
	}
	return list[from:to]
}

// dropsAfter reports whether the clock of some later record is less than that of r.
func dropsAfter(r *record, later []*record) bool {
	return slices.ContainsFunc(later, func(o *record) bool { return o.clock < r.clock && o.micros-r.micros > clock.RestartGap })
}

// unstarted returns how many executions of a process must have started and are not known to, and between which records: before each
// end there are as many starts as ends.
func unstarted(records []*record) (missing int64, first, last *record) {
	for _, end := range records {
		if !endsReceived(records, end) {
			continue
		}
		n := int64(1)
		for _, r := range records {
			switch {
			case r.clock >= end.clock:
			case r.kind == TaskStarted:
				n--
			case endsReceived(records, r):
				n++
			}
		}
		if n > missing || n == missing && last != nil && end.clock < last.clock {
			missing, last = n, end
		}
	}
	for _, r := range records {
		if last != nil && r.kind == TaskReceived && r.clock < last.clock && (first == nil || r.clock < first.clock) {
			first = r
		}
	}
	return missing, first, last
}

// endsReceived reports whether a record ends an execution whose task-received is among the records. The next attempt may be
// received before an attempt ends: unless the first was received, the end may be that of one of which nothing else is known.
func endsReceived(records []*record, end *record) bool {
	if end.kind != TaskSucceeded && end.kind != TaskRetried {
		return false
	}
	received, ended, first := 0, 0, false
	for _, r := range records {
		switch {
		case r.clock >= end.clock:
		case r.kind == TaskReceived:
			received++
			first = first || r.n == 0
		case r.kind == TaskSucceeded, r.kind == TaskRetried:
			ended++
		default:
		}
	}
	return received > ended && first
}
