package state

import (
	"encoding/json"
	"fmt"
	"maps"
)

// EditTask returns the saved events of a task with the texts that edit gives them, and whether any differs. edit must change
// nothing but Args, Kwargs, Result, Exception, Traceback and Extra.
func EditTask(id string, events []byte, edit func(*Event)) (edited []byte, changed bool, err error) {
	if len(events) < 2 || !readable(events[0]) {
		return nil, false, fmt.Errorf("edit task: %w", ErrSaved)
	}
	r := savedReader{byteReader: byteReader[string]{rest: string(events[1:])}}
	edited = append(edited, savedForm)
	if hasConclusion(events[0]) {
		edited[0] = concludedForm
		edited = appendConclusion(edited, r.conclusion())
	}
	var w codec
	r.begin(id)
	w.begin(id)
	for len(r.rest) > 0 {
		var s SavedEvent
		if r.next(&s); r.bad || !s.Event.Kind.Task() {
			return nil, false, fmt.Errorf("edit task: %w", ErrSaved)
		}
		s.Event.ID = id
		changed = s.Event.edit(edit) || changed
		edited = w.append(edited, &s.Event, s.Repaired, s.Cut, s.Event.ReceivedMicros != 0)
	}
	return edited, changed, nil
}

// EditJournal is EditTask for events that AppendEvent wrote.
func EditJournal(journal []byte, edit func(*Event)) (edited []byte, changed bool, err error) {
	r := savedReader{byteReader: byteReader[string]{rest: string(journal)}}
	for len(r.rest) > 0 {
		if form := r.byte(); !readable(form) || hasConclusion(form) {
			return nil, false, fmt.Errorf("edit journal: %w", ErrSaved)
		}
		var s SavedEvent
		id := r.sharedText()
		r.begin(id)
		if r.next(&s); r.bad {
			return nil, false, fmt.Errorf("edit journal: %w", ErrSaved)
		}
		s.Event.ID = id
		changed = s.Event.edit(edit) || changed
		var w codec
		edited = w.appendText(append(edited, savedForm), id)
		w.begin(id)
		edited = w.append(edited, &s.Event, s.Repaired, s.Cut, s.Event.ReceivedMicros != 0)
	}
	return edited, changed, nil
}

// EditWorker is EditTask for a worker as SaveWorkers saved it: edit gets its custom fields in Extra.
func EditWorker(saved []byte, edit func(*Event)) (edited []byte, changed bool, err error) {
	var w savedWorker
	if err := json.Unmarshal(saved, &w); err != nil {
		return nil, false, fmt.Errorf("edit worker: %w", err)
	}
	for i := range w.Incarnations {
		e := Event{Kind: WorkerHeartbeat, Hostname: w.Name, Extra: w.Incarnations[i].Report.Extra}
		changed = e.edit(edit) || changed
	}
	if !changed {
		return saved, false, nil
	}
	edited, err = json.Marshal(w)
	return edited, true, err
}

// edit calls f with the event and reports whether that has changed a text.
func (e *Event) edit(f func(*Event)) bool {
	texts := func() [5]string { return [...]string{e.Args, e.Kwargs, e.Result, e.Exception, e.Traceback} }
	before, extra := texts(), maps.Clone(e.Extra)
	f(e)
	return before != texts() || !maps.Equal(extra, e.Extra)
}
