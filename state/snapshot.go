package state

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"slices"
)

// snapshotVersion is raised whenever the shape of a snapshot changes.
const snapshotVersion = 1

// header begins a snapshot: a gob stream of header, Workers lives, Tasks events.
type header struct {
	Version int
	Clock   int64
	Now     int64
	Workers int
	Events  int
	Evicted uint64
}

// savedEvent is an event of a task with the repaired clock that it was given on receipt.
type savedEvent struct {
	Event    Event
	Repaired int64
	Cut      bool        // some of its text is gone,
	Family   *[2]taskKey // and with it perhaps the root and parent that the task has
}

// savedWorker is a worker in a snapshot.
type savedWorker struct {
	Name                        string
	Lives                       []life
	Dropped, Heard, Beat, Clock int64
}

// Snapshot writes everything that is held, such that Restore makes the same cluster of it.
func (c *Cluster) Snapshot(w io.Writer) error {
	enc := gob.NewEncoder(w)
	h := header{Version: snapshotVersion, Clock: c.clock.Value(), Now: c.now, Workers: len(c.workers), Evicted: c.evicted}
	for _, i := range c.index {
		h.Events += int(c.rows.at(i).count)
	}
	if err := enc.Encode(h); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	for _, w := range c.workers {
		s := savedWorker{w.name, w.epochs, w.dropped, w.heard, w.beat, w.clock}
		if err := enc.Encode(s); err != nil {
			return fmt.Errorf("write snapshot: %w", err)
		}
	}
	var err error
	c.events(func(s savedEvent) bool {
		err = enc.Encode(s)
		return err == nil
	})
	if err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// errSnapshot is returned for what is no snapshot, or one of another version.
var errSnapshot = errors.New("not a snapshot of this version")

// Restore reads a snapshot into an empty cluster.
func (c *Cluster) Restore(r io.Reader) error {
	dec := gob.NewDecoder(r)
	var h header
	if err := dec.Decode(&h); err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	if h.Version != snapshotVersion {
		return fmt.Errorf("read snapshot: version %d: %w", h.Version, errSnapshot)
	}
	workers := make([]savedWorker, h.Workers)
	for i := range workers {
		if err := dec.Decode(&workers[i]); err != nil {
			return fmt.Errorf("read snapshot: %w", err)
		}
	}
	for range h.Events {
		var s savedEvent
		if err := dec.Decode(&s); err != nil {
			return fmt.Errorf("read snapshot: %w", err)
		}
		c.restore(s)
	}
	for _, s := range workers {
		c.join(s)
	}
	c.clock.Restore(max(h.Clock, c.clock.Value()))
	c.now = max(c.now, h.Now)
	c.evicted += h.Evicted
	return nil
}

// restore adds an event of another cluster.
func (c *Cluster) restore(s savedEvent) {
	var flags recordFlags
	if s.Cut {
		flags = cut
	}
	c.applyTask(&s.Event, s.Repaired, flags)
	if s.Family == nil {
		return
	}
	k, _ := key(s.Event.ID)
	if i, ok := c.index[k]; ok {
		c.relate(i, c.rows.at(i), s.Family[0], s.Family[1])
	}
}

// Merge folds in what another cluster holds: two receivers that saw overlapping events agree
// once merged. other is not changed.
func (c *Cluster) Merge(other *Cluster) {
	other.events(func(s savedEvent) bool {
		c.restore(s)
		return true
	})
	for _, w := range other.workers {
		c.join(savedWorker{w.name, w.epochs, w.dropped, w.heard, w.beat, w.clock})
	}
	c.clock.Restore(max(c.clock.Value(), other.clock.Value()))
	c.now = max(c.now, other.now)
}

// join merges what is known of a worker: every part of it is a maximum.
func (c *Cluster) join(s savedWorker) {
	w := c.workers[s.Name]
	if w == nil {
		w = c.addWorker(s.Name)
	}
	c.version++
	w.dropped, w.clock = max(w.dropped, s.Dropped), max(w.clock, s.Clock)
	w.heard, w.beat = max(w.heard, s.Heard), max(w.beat, s.Beat)
	for _, l := range s.Lives {
		i := slices.IndexFunc(w.epochs, func(o life) bool {
			return o.PID == l.PID && (o.First <= l.Last && l.First <= o.Last)
		})
		if i < 0 {
			w.epochs = append(w.epochs, l)
			continue
		}
		w.epochs[i].join(l)
	}
	w.sort()
}

func (l *life) join(m life) {
	l.First, l.Last = min(l.First, m.First), max(l.Last, m.Last)
	if m.Clock > l.Clock {
		l.Clock, l.ClockMicros = m.Clock, m.ClockMicros
	}
	if m.Alive.after(l.Alive) {
		l.Alive = m.Alive
	}
	if m.Goodbye.after(l.Goodbye) {
		l.Goodbye = m.Goodbye
	}
	if m.Report.At.after(l.Report.At) {
		l.Report = m.Report
	}
}

// events yields every event held, oldest task first, each task's in order of arrival.
func (c *Cluster) events(yield func(savedEvent) bool) {
	c.order.oldest(0, 0, func(run []entry) bool {
		for _, e := range run {
			r := c.rows.at(e.row)
			for i := r.head; i != 0; {
				rec := c.records.at(i)
				if !yield(c.event(r, rec)) {
					return false
				}
				i = rec.next
			}
		}
		return true
	})
}

// event makes an event of a record again.
func (c *Cluster) event(r *row, rec *record) savedEvent {
	lane := c.lanes.key(rec.lane)
	f, whole := c.fields(rec)
	k := c.calls.key(rec.call)
	e := Event{
		Kind: rec.kind, ID: c.id(r), Hostname: lane.Hostname, PID: lane.PID, Clock: rec.clock, Micros: rec.micros,
		Retimed: rec.flags&retimed != 0, Present: f.present, Null: f.null,
		Name: k.name, Queue: k.queue, Exchange: k.exchange, RoutingKey: k.routingKey,
		Args: f.args, Kwargs: f.kwargs, RootID: f.root, ParentID: f.parent, Retries: f.retries, ETA: f.eta, Expires: f.expires,
		Result: f.result, Runtime: f.runtime, Exception: f.exc, Traceback: f.trace,
	}
	if rec.kind == TaskCustom {
		e.Subject = string(c.states.name(stateCode(rec.n)))
	}
	s := savedEvent{Event: e, Repaired: rec.repaired, Cut: !whole}
	if !whole && r.relation != 0 {
		rel := c.relations.at(r.relation)
		s.Family = &[2]taskKey{rel.root, rel.parent}
	}
	return s
}
