package state

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
)

// Reader decodes tasks from their saved events, apart from any cluster. The zero value is ready to use. It is not
// safe for concurrent use.
type Reader struct {
	// Until, if not 0, is the instant as of which tasks are decoded, µs: what was received or concluded later does not count.
	Until int64

	c *Cluster
}

// ErrUnknownYet is returned for tasks of which nothing was received by Reader.Until.
var ErrUnknownYet = errors.New("not known yet")

// TaskEvents returns the task, and its events by stamp. Children, and what depends on workers, are unknown.
func (r *Reader) TaskEvents(id string, events []byte) (Task, []TaskEvent, error) {
	row, err := r.open(id, events)
	if err != nil {
		return Task{}, nil, err
	}
	return r.c.taskBy(r.c.rules, row), r.c.TaskEvents(id), nil
}

// Task is TaskEvents without the events.
func (r *Reader) Task(id string, events []byte) (Task, error) {
	row, err := r.open(id, events)
	if err != nil {
		return Task{}, err
	}
	return r.c.taskBy(r.c.rules, row), nil
}

// open loads a task as the only one of the cluster.
func (r *Reader) open(id string, events []byte) (*row, error) {
	if r.c == nil {
		r.c = New(Options{MaxTasks: 2, MaxText: 256 << 20})
		r.c.unpackedOnly, r.c.text.once = true, true
	}
	for len(r.c.byStamp.chunks) > 0 {
		r.c.drop(r.c.byStamp.chunks[0][0].row)
	}
	r.c.text.reset()
	known, err := r.c.LoadUntil(id, events, cmp.Or(r.Until, math.MaxInt64))
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, ErrUnknownYet
	}
	return r.c.row(id), nil
}

// Compact returns saved events without those that no execution shows, and whether there were any.
func (r *Reader) Compact(id string, events []byte) (thin []byte, less bool, err error) {
	row, err := r.open(id, events)
	if err != nil {
		return nil, false, err
	}
	c := r.c
	before := c.task(row)
	for i, drop := range c.unshown(row) {
		if drop {
			less = true
			c.remove(row, i)
		}
	}
	if !less {
		return events, false, nil
	}
	thin, _ = c.save(row)
	after, err := r.Task(id, thin)
	if err != nil {
		return nil, false, fmt.Errorf("thin task: %w", err)
	}
	if !reflect.DeepEqual(before, after) { // it takes part in more than shows
		return events, false, nil
	}
	return thin, true, nil
}

// unshown returns the records of a row that none of its executions shows.
func (c *Cluster) unshown(r *row) map[uint32]bool {
	rules, ok := c.rules.(*causalRules)
	if !ok {
		return nil
	}
	f := &rules.fold
	f.fold(c.chain(r, nil))
	shows := make(map[*record]bool)
	for i := range f.executions {
		for _, e := range f.executions[i].byKind {
			shows[e] = true
		}
	}
	idle := make(map[uint32]bool)
	for i := r.head; i != 0; {
		e := c.records.at(i)
		if e.kind != TaskSent && !shows[e] {
			idle[i] = true
		}
		i = e.next
	}
	return idle
}

// DecodeTask decodes one task as a Reader does; for many, a Reader is faster.
func DecodeTask(id string, events []byte) (Task, []TaskEvent, error) {
	return new(Reader).TaskEvents(id, events)
}
