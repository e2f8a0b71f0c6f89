package state

import "fmt"

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
	if len(events) < 2 || !readable(events[0]) || hasConclusion(events[0]) {
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

// Receipts returns when the events of a saved task were received, µs, in the order of their receipt where nothing was
// received twice.
func Receipts(id string, events []byte) (receipts []int64, err error) {
	if len(events) < 2 || !readable(events[0]) {
		return nil, fmt.Errorf("read task: %w", ErrSaved)
	}
	r := savedReader{byteReader: byteReader[string]{rest: string(events[1:])}}
	if events[0] == concludedForm {
		r.conclusion()
	}
	r.begin(id)
	for len(r.rest) > 0 {
		var s savedEvent
		if r.next(&s); r.bad {
			return nil, fmt.Errorf("read task: %w", ErrSaved)
		}
		receipts = append(receipts, s.Event.receipt())
	}
	return receipts, nil
}

// Replay folds in events that AppendEvent wrote, so that events that are known already change nothing, and yields
// each with its effect. Before an event that NeedsLoad, it calls load, if that is not nil, with the id of the task. Events
// before the first that cannot be read are folded in beside the error.
func (c *Cluster) Replay(journal []byte, load func(id string), yield func(*Event, Change)) error {
	r := savedReader{byteReader: byteReader[string]{rest: string(journal)}}
	var s savedEvent
	for len(r.rest) > 0 {
		if form := r.byte(); !readable(form) || hasConclusion(form) {
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
