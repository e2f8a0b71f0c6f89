package relay

import (
	"context"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// recordBuffer collects outcomes and replies while the store is busy. It is safe for concurrent use.
type recordBuffer struct {
	full chan struct{} // holds a token when there is something to record, or close was called

	// mu guards what follows.
	mu       sync.Mutex
	outcomes []history.Outcome
	replies  []history.CommandReplies
	closed   bool
}

func newRecordBuffer() *recordBuffer { return &recordBuffer{full: make(chan struct{}, 1)} }

// settle adds outcomes of commands.
func (l *recordBuffer) settle(outcomes ...history.Outcome) {
	l.add(func() { l.outcomes = append(l.outcomes, outcomes...) })
}

// reply adds replies to a command with an outcome.
func (l *recordBuffer) reply(r history.CommandReplies) {
	l.add(func() { l.replies = append(l.replies, r) })
}

// close ends the use: nothing more is added.
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

// take empties the buffer and returns what was in it, and whether it is closed.
func (l *recordBuffer) take() (outcomes []history.Outcome, replies []history.CommandReplies, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	outcomes, replies = l.outcomes, l.replies
	l.outcomes, l.replies = nil, nil
	return outcomes, replies, l.closed
}

// record writes what the buffer collects until that is closed or ctx ends.
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

// persist retries a write until it succeeds or ctx ends: then what was claimed stays in flight, and the next process sends it
// again.
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
