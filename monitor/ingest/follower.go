package ingest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
)

const (
	followEvery  = 250 * time.Millisecond // between looks at what the leader has written
	followPage   = 2_000                  // tasks of one look
	overdueAfter = 3 * time.Second        // tasks that the leader has not written since are looked up: it may have had them before
	handAfter    = 15 * time.Second       // tasks that are not stored then are handed to the leader, which has not heard of them
	handPage     = 500                    // tasks handed at once
)

// follower holds batches of events until the leader has written every task that they changed, with all that is known here, and
// merges what the leader has written.
type follower struct {
	in      *Ingester
	removal int64 // number of the last removal that was read, -1 if none was
	after   int64 // number of the last change that was read
	batches []keptBatch
	number  uint64            // of batches[0]
	first   map[string]uint64 // number of the oldest batch with a task, until that is written
	bytes   int               // of journals
	events  int
	checked time.Time // when overdue tasks were looked up
	failing bool
}

// keptBatch is what was folded at a time and is not acknowledged.
type keptBatch struct {
	pendingBatch
	at      time.Time
	waiting int // tasks of which it is the oldest batch
}

func newFollower(in *Ingester) follower {
	return follower{in: in, number: 1, removal: -1, first: make(map[string]uint64)}
}

// step reads what the leader has written, and acknowledges what that has.
func (f *follower) step(ctx context.Context) {
	f.in.mu.Lock()
	f.in.rollups = rollup.Recorder{} // the leader counts
	batch := f.in.pending.take()
	f.in.mu.Unlock()
	f.keep(batch)
	err := f.read(ctx)
	if err == nil {
		err = f.lookUp(ctx)
	}
	if failing := err != nil; failing != f.failing && ctx.Err() == nil {
		f.failing = failing
		health := StoreHealth{}
		if failing {
			f.in.log.Error("history not read", "error", err)
			health = StoreHealth{LastError: err.Error(), FailedAt: f.in.now(), Since: f.in.now()}
		}
		f.in.setStoreHealth(health)
	}
	f.acknowledge()
}

// keep holds a batch.
func (f *follower) keep(b pendingBatch) {
	if b.messages > 0 || len(b.journal) > 0 {
		number := f.number + uint64(len(f.batches))
		kept := keptBatch{pendingBatch: b, at: f.in.now()}
		err := state.EachJournaled(b.journal, func(s *state.SavedEvent) {
			if _, known := f.first[s.Event.ID]; !known && s.Event.Kind.Task() {
				f.first[s.Event.ID] = number
				kept.waiting++
			}
		})
		if err != nil {
			f.in.log.Error("events not kept", "error", err)
		}
		f.batches = append(f.batches, kept)
		f.bytes, f.events = f.bytes+len(b.journal), f.events+b.events
	}
	f.count()
}

// count tells how much is held.
func (f *follower) count() {
	f.in.mu.Lock()
	defer f.in.mu.Unlock()
	f.in.pending.writingBytes, f.in.pending.writingEvents, f.in.pending.oldest = f.bytes, f.events, time.Time{}
	if len(f.batches) > 0 {
		f.in.pending.oldest = f.batches[0].at
	}
}

// read merges what the leader has written since the last time.
func (f *follower) read(ctx context.Context) error {
	for {
		tasks, last, err := f.in.shared.Changes(ctx, f.after, followPage)
		if err != nil {
			return err
		}
		f.merge(tasks)
		if f.after = last; len(tasks) < followPage {
			break
		}
	}
	ids, last, err := f.in.shared.Removed(ctx, f.removal)
	if f.removal = last; err == nil {
		f.forget(ids)
	}
	return err
}

// lookUp merges tasks that the leader seems to have written before this node heard of them. Others were removed meanwhile, or the
// leader has not heard of them.
func (f *follower) lookUp(ctx context.Context) error {
	now := f.in.now()
	if now.Sub(f.checked).Abs() < overdueAfter {
		return nil
	}
	f.checked = now
	for ids := range slices.Chunk(f.waitingFor(now, overdueAfter), followPage) {
		tasks, err := f.in.shared.StoredTasks(ctx, ids)
		if err != nil {
			return err
		}
		f.merge(tasks)
		removed, err := f.in.shared.RemovedAmong(ctx, ids)
		if err != nil {
			return err
		}
		f.forget(removed)
	}
	late := f.waitingFor(now, handAfter)
	return f.hand(ctx, late[:min(len(late), handPage)])
}

// waitingFor returns the tasks that batches have waited for so long.
func (f *follower) waitingFor(now time.Time, atLeast time.Duration) (ids []string) {
	for id, n := range f.first {
		if now.Sub(f.batches[n-f.number].at) >= atLeast {
			ids = append(ids, id)
		}
	}
	return ids
}

// hand gives the leader all events of some tasks that are known here and not acknowledged.
func (f *follower) hand(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	of := setOf(ids)
	var journal []byte
	for i := range f.batches {
		err := state.EachJournaled(f.batches[i].journal, func(s *state.SavedEvent) {
			if of[s.Event.ID] {
				journal = state.AppendEvent(journal, &s.Event, s.Repaired)
			}
		})
		if err != nil {
			f.in.log.Error("events not handed to the node that leads", "error", err)
		}
	}
	if err := f.in.shared.Ask(ctx, history.NodeRequest{Events: journal}); err != nil {
		return err
	}
	f.in.log.Warn("the node that leads has not heard of tasks: it is told", "tasks", len(ids))
	f.settle(ids)
	return nil
}

func (f *follower) merge(tasks []state.StoredTask) {
	if len(tasks) == 0 {
		return
	}
	var whole []string
	f.in.mu.Lock()
	err := f.in.cluster.MergeStored(tasks, func(id string, all bool) {
		if all {
			whole = append(whole, id)
		}
	})
	f.in.notify()
	f.in.mu.Unlock()
	if err != nil {
		f.in.log.Error("stored events of a task not read", "error", err)
	}
	f.settle(whole)
}

// forget drops tasks that the leader has removed from the store.
func (f *follower) forget(ids []string) {
	if len(ids) == 0 {
		return
	}
	f.in.mu.Lock()
	f.in.cluster.ForgetRemoved(ids)
	f.in.notify()
	f.in.mu.Unlock()
	f.settle(ids)
}

// settle has no batch wait for some tasks.
func (f *follower) settle(ids []string) {
	for _, id := range ids {
		if n, waits := f.first[id]; waits {
			delete(f.first, id)
			f.batches[n-f.number].waiting--
		}
	}
}

// acknowledge acknowledges the batches that wait for no task, up to the first that does.
func (f *follower) acknowledge() {
	messages := 0
	for len(f.batches) > 0 && f.batches[0].waiting == 0 {
		b := f.batches[0]
		if next := len(f.batches) > 1 && f.batches[1].waiting == 0 && f.batches[1].stream == b.stream; b.stream != nil && !next {
			if err := b.stream.Ack(b.tag); err != nil && !errors.Is(err, broker.ErrClosed) {
				f.in.log.Error("events not acknowledged", "error", err)
			}
		}
		messages += b.messages
		f.bytes, f.events = f.bytes-len(b.journal), f.events-b.events
		f.batches, f.number = f.batches[1:], f.number+1
	}
	if messages == 0 {
		return
	}
	f.in.mu.Lock()
	f.in.pending.unacked -= messages
	f.in.mu.Unlock()
	f.count()
	signal(f.in.writer.written)
}

// take empties the follower and returns what was in it.
func (f *follower) take() []keptBatch {
	kept := f.batches
	f.number += uint64(len(f.batches))
	f.batches, f.bytes, f.events = nil, 0, 0
	clear(f.first)
	return kept
}
