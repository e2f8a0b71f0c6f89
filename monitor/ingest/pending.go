package ingest

import (
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/state"
)

// pendingBatch is what is folded and not yet written and acknowledged.
type pendingBatch struct {
	journal  []byte             // new events (state.AppendEvent)
	events   int                // in journal
	since    time.Time          // when the first of them was folded, zero if there is none
	messages int                // folded, whether or not they had new events
	stream   broker.EventStream // of the newest message
	tag      uint64             // of the newest message

	spare         []byte    // memory to reuse for the next journal
	writingBytes  int       // of a journal that is being written
	writingEvents int       // events in it
	oldest        time.Time // when the oldest of the events was folded that a node which follows keeps, zero if it keeps none
	unacked       int       // messages folded and not acknowledged
}

// add appends an event unless it is known: then it is on disk or pending already.
func (p *pendingBatch) add(e *state.Event, ch state.Change) {
	if ch.New {
		p.journal = state.AppendEvent(p.journal, e, ch.Clock)
		p.events++
	}
}

// received notes the newest of n folded messages. Those of an earlier stream can no longer be acknowledged: the broker
// redelivers them.
func (p *pendingBatch) received(stream broker.EventStream, tag uint64, n int, now time.Time) {
	p.stream, p.tag = stream, tag
	if p.events > 0 && p.since.IsZero() {
		p.since = now
	}
	p.messages += n
	p.unacked += n
}

// take empties the batch and returns what was in it.
func (p *pendingBatch) take() pendingBatch {
	taken := *p
	p.journal, p.spare = p.spare[:0], nil
	p.events, p.messages, p.stream, p.tag, p.since = 0, 0, nil, 0, time.Time{}
	p.writingBytes, p.writingEvents = len(taken.journal), taken.events
	return taken
}

// unread has messages that take has returned wait on, since events of theirs could not be folded.
func (p *pendingBatch) unread(taken *pendingBatch) {
	p.messages, p.stream, p.tag = taken.messages, taken.stream, taken.tag
	taken.messages, taken.stream, taken.tag = 0, nil, 0
}

// written notes that what take returned is on disk.
func (p *pendingBatch) written(taken *pendingBatch) {
	p.writingBytes, p.writingEvents = 0, 0
	p.unacked -= taken.messages
	if cap(taken.journal) <= maxSpare {
		p.spare = taken.journal
	}
}
