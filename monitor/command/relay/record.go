package relay

import (
	"context"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// ledger collects what is to be recorded while the store is busy. It is safe for concurrent use.
type recordBuffer struct {
	full chan struct{} // holds a token when there is something, or never will be again

	// mu guards what follows.
	mu       sync.Mutex
	outcomes []history.Outcome
	replies  []history.CommandReplies
	closed   bool
}

func newRecordBuffer() *recordBuffer { return &recordBuffer{full: make(chan struct{}, 1)} }

// settle adds what became of commands.
func (l *recordBuffer) settle(outcomes ...history.Outcome) {
	l.add(func() { l.outcomes = append(l.outcomes, outcomes...) })
}

// reply adds what was heard of a command that was settled before.
func (l *recordBuffer) reply(r history.CommandReplies) {
	l.add(func() { l.replies = append(l.replies, r) })
}

// close says that nothing will be added any more.
func (l *recordBuffer) close() { l.add(func() { l.closed = true }) }

func (l *recordBuffer) add(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	select {
	case l.full <- struct{}{}:
	default:
	}
}

// take returns what was added since, and whether that was all.
func (l *recordBuffer) take() (outcomes []history.Outcome, replies []history.CommandReplies, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	outcomes, replies = l.outcomes, l.replies
	l.outcomes, l.replies = nil, nil
	return outcomes, replies, l.closed
}

// record writes what the ledger collects, until that is closed or ctx ends.
func (r *Relay) record(ctx context.Context) {
	for closed := false; !closed; {
		<-r.records.full
		var outcomes []history.Outcome
		var replies []history.CommandReplies
		outcomes, replies, closed = r.records.take()
		if len(outcomes) > 0 && r.persist(ctx, func() error { return r.o.Store.RecordOutcomes(ctx, r.o.Now(), outcomes) }) {
			r.change(func(*Status) {
				for i := range outcomes {
					delete(r.claimed, outcomes[i].ID)
				}
			})
			r.poll()
		}
		if len(replies) > 0 && r.persist(ctx, func() error { return r.o.Store.AddReplies(ctx, r.o.Now(), replies) }) {
			r.change(nil)
		}
	}
}

// persist repeats a write until the store takes it, or ctx ends: then what was claimed stays in flight, and the next
// run sends it again.
func (r *Relay) persist(ctx context.Context, write func() error) bool {
	var timer *time.Timer
	for wait := r.o.PollInterval; ; wait = min(2*wait, 10*r.o.PollInterval) {
		err := write()
		if err == nil {
			return true
		}
		r.o.Logger.ErrorContext(ctx, "what became of commands is not recorded", "error", err)
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
}
