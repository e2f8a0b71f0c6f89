package relay

import (
	"context"
	"sync"
	"time"

	"github.com/umbelhq/umbel/internal/retry"
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

// addOutcomes adds outcomes of commands.
func (b *recordBuffer) addOutcomes(outcomes ...history.Outcome) {
	b.add(func() { b.outcomes = append(b.outcomes, outcomes...) })
}

// addReplies adds replies to a command with an outcome.
func (b *recordBuffer) addReplies(r history.CommandReplies) {
	b.add(func() { b.replies = append(b.replies, r) })
}

// close ends the use: nothing more is added.
func (b *recordBuffer) close() { b.add(func() { b.closed = true }) }

func (b *recordBuffer) add(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	select {
	case b.full <- struct{}{}:
	default:
	}
}

// take empties the buffer and returns what was in it, and whether it is closed.
func (b *recordBuffer) take() (outcomes []history.Outcome, replies []history.CommandReplies, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	outcomes, replies = b.outcomes, b.replies
	b.outcomes, b.replies = nil, nil
	return outcomes, replies, b.closed
}

// record writes what the buffer collects until that is closed or ctx ends.
func (r *Relay) record(ctx context.Context) {
	for closed := false; !closed; {
		<-r.records.full
		var outcomes []history.Outcome
		var replies []history.CommandReplies
		outcomes, replies, closed = r.records.take()
		if len(outcomes) > 0 && r.persist(ctx, func() error { return r.o.Store.RecordOutcomes(ctx, r.held().name, r.o.Now(), outcomes) }) {
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
	for failures := 1; ; failures++ {
		err := write()
		if err == nil {
			return true
		}
		r.o.Logger.ErrorContext(ctx, "outcomes of commands not recorded", "error", err)
		select {
		case <-time.After(retry.After(failures, r.o.PollInterval, 10*r.o.PollInterval)):
		case <-ctx.Done():
			return false
		}
	}
}
