package ingest

import (
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/state"
)

// intake is what was folded and waits to be written and acknowledged.
type pendingBatch struct {
	journal  []byte             // events that were not known yet, as state.AppendEvent writes them
	events   int                // in journal
	messages int                // that brought them, and those that brought nothing
	stream   broker.EventStream // of the newest message
	tag      uint64             // of the newest message

	spare         []byte // memory for the next journal
	writingBytes  int    // bytes of a journal that was taken and is not written
	writingEvents int    // events in it
	unacked       int    // messages folded and not acknowledged
}

// add appends an event, unless it was known: then it is written already, or waits here.
func (i *pendingBatch) add(e *state.Event, ch state.Change) {
	if ch.New {
		i.journal = state.AppendEvent(i.journal, e, ch.Clock)
		i.events++
	}
}

// until notes the newest of n messages that were folded. Those of a session before this one cannot be
// acknowledged any more: the broker delivers them again.
func (i *pendingBatch) received(stream broker.EventStream, tag uint64, n int) {
	i.stream, i.tag = stream, tag
	i.messages += n
	i.unacked += n
}

// take empties the intake.
func (i *pendingBatch) take() pendingBatch {
	taken := *i
	i.journal, i.spare = i.spare[:0], nil
	i.events, i.messages, i.stream, i.tag = 0, 0, nil, 0
	i.writingBytes, i.writingEvents = len(taken.journal), taken.events
	return taken
}

// written ends what take began.
func (i *pendingBatch) written(taken *pendingBatch) {
	i.writingBytes, i.writingEvents = 0, 0
	i.unacked -= taken.messages
	if cap(taken.journal) <= maxSpare {
		i.spare = taken.journal
	}
}
