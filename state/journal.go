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
	if len(events) > 0 && hasConclusion(events[0]) {
		return nil, fmt.Errorf("read task: %w", ErrSaved)
	}
	_, err = EachSaved(id, events, func(s *SavedEvent) { journal = AppendEvent(journal, &s.Event, s.Repaired) })
	return journal, err
}

// Receipts returns when the events of a saved task were received, µs, in the order of their receipt where nothing was
// received twice.
func Receipts(id string, events []byte) (receipts []int64, err error) {
	_, err = EachSaved(id, events, func(s *SavedEvent) { receipts = append(receipts, s.Event.receipt()) })
	return receipts, err
}

// EachSaved calls f with the events of a saved task, in the order of Receipts, and returns what was concluded of it, nil if
// nothing was. The event is valid only during the call.
func EachSaved(id string, events []byte, f func(s *SavedEvent)) (*Conclusion, error) {
	if len(events) < 2 || !readable(events[0]) {
		return nil, fmt.Errorf("read task: %w", ErrSaved)
	}
	r := savedReader{byteReader: byteReader[string]{rest: string(events[1:])}}
	var k *Conclusion
	if hasConclusion(events[0]) {
		k = new(r.conclusion())
	}
	r.begin(id)
	var s SavedEvent
	for len(r.rest) > 0 {
		if r.next(&s); r.bad || !s.Event.Kind.Task() {
			return nil, fmt.Errorf("read task: %w", ErrSaved)
		}
		s.Event.ID = id
		f(&s)
	}
	return k, nil
}

// ApplySaved folds in an event as Apply did when it was received: with the repaired clock of then, and what was known of its
// sender's clock.
func (c *Cluster) ApplySaved(s *SavedEvent) Change {
	c.now = max(c.now, s.Event.ReceivedMicros)
	c.RestoreClock(s.Repaired)
	return c.applyAhead(&s.Event, s.Repaired, s.flags(), s.Event.OffsetMicros)
}

// Replay folds in events that AppendEvent wrote, so that events that are known already change nothing, and yields
// each with its effect. Before an event that NeedsLoad, it calls load, if that is not nil, with the id of the task. Events
// before the first that cannot be read are folded in beside the error.
func (c *Cluster) Replay(journal []byte, load func(id string), yield func(*Event, Change)) error {
	return EachJournaled(journal, func(s *SavedEvent) {
		if load != nil && c.NeedsLoad(&s.Event) {
			load(s.Event.ID)
		}
		c.RestoreClock(s.Repaired)
		yield(&s.Event, c.apply(&s.Event, s.Repaired, s.flags()))
	})
}

// EachJournaled calls f with the events that AppendEvent wrote, those before the first that cannot be read. The event is valid only
// during the call.
func EachJournaled(journal []byte, f func(s *SavedEvent)) error {
	r := savedReader{byteReader: byteReader[string]{rest: string(journal)}}
	var s SavedEvent
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
		f(&s)
	}
	return nil
}
