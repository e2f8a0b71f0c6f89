package ingest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
)

// Shared is a Store that several processes have open, called nodes. One leads: it writes. The others follow: they fold the same
// events, acknowledge what the leader has written, and hold what it has not.
type Shared interface {
	Store
	// TryLead has this node lead unless another one does, and reports whether it leads.
	TryLead(ctx context.Context) (bool, error)
	// Lost returns a channel that is closed once this node, which TryLead had lead, no longer does. Write then fails.
	Lost() <-chan struct{}
	// Report tells the other nodes how this one is doing, and returns all, and how far the clock of the store is ahead of this process's.
	Report(ctx context.Context, r history.NodeReport) (nodes []history.Node, ahead time.Duration, err error)
	// NoteRemoved tells the nodes that follow which tasks are gone.
	NoteRemoved(ctx context.Context, ids []string) error
	// Removed returns the tasks that were removed after a removal of a number, and the number of the last one; for -1 that alone.
	Removed(ctx context.Context, after int64) (ids []string, last int64, err error)
	// RemovedAmong returns those of some tasks that were removed lately.
	RemovedAmong(ctx context.Context, ids []string) ([]string, error)
	// Ask asks the node that leads for something, now or when there is one.
	Ask(ctx context.Context, r history.NodeRequest) error
	// Asked returns the oldest of what nodes have asked for, at most limit, in their order, but what was Answered.
	Asked(ctx context.Context, limit int) ([]history.NodeRequest, error)
	Answered(ctx context.Context, numbers []int64) error
	// GiveUp lets another node lead.
	GiveUp(ctx context.Context) error
	// NewestChange returns the number of the newest change of a task.
	NewestChange(ctx context.Context) (int64, error)
	// Written returns the number of the newest change that this process has written, 0 if it has written none.
	Written() int64
	// Changes returns the next tasks, at most limit, that were written after the change of a number, and the number of the last.
	Changes(ctx context.Context, after int64, limit int) (tasks []state.StoredTask, last int64, err error)
	// StoredTasks returns those tasks that are there.
	StoredTasks(ctx context.Context, ids []string) ([]state.StoredTask, error)
}

// leadEvery is how often a node that follows tries to lead.
const leadEvery = 100 * time.Millisecond

// Of reports between nodes.
const (
	reportEvery  = time.Second
	maxAway      = 4 * time.Second // without a broker, after which a leader lets another node lead that has one
	maxClockDiff = 2 * time.Second // between this process and the store
)

// Leads reports whether this process writes the history.
func (in *Ingester) Leads() bool { return in.leads.Load() }

// begin restores the state, and finds out whether this process leads.
func (in *Ingester) begin(ctx context.Context) (err error) {
	leads := true
	if in.shared != nil {
		if leads, err = in.shared.TryLead(ctx); err != nil {
			return err
		}
		in.writer.lost = in.shared.Lost()
		if in.follower.after, err = in.shared.NewestChange(ctx); err != nil { // before what is restored
			return err
		}
	}
	in.leads.Store(leads)
	return in.restore(ctx)
}

// write writes the history while this process leads, and follows who leads while it does not, until all is written after drained is
// closed, or writing ends.
func (in *Ingester) write(ctx, writing context.Context, drained <-chan struct{}) {
	for {
		if !in.leads.Load() {
			if !in.follow(ctx) {
				return
			}
			continue
		}
		in.lead(ctx, writing, drained)
		if in.shared == nil || !closed(in.writer.lost) {
			return
		}
		in.stepDown()
	}
}

// lead writes until this process no longer leads, or is to stop.
func (in *Ingester) lead(ctx, writing context.Context, drained <-chan struct{}) {
	maintaining, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		in.restoreRest(maintaining)
		in.maintain(maintaining)
	})
	if in.shared != nil {
		wg.Go(func() { in.answer(maintaining) })
	}
	in.writer.run(writing, ctx.Done(), drained)
	cancel()
	wg.Wait()
}

// follow follows who leads, until this process does, or is to stop: then it returns false.
func (in *Ingester) follow(ctx context.Context) (leads bool) {
	restoring, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { in.restoreRest(restoring) })
	defer wg.Wait()
	defer cancel()
	try, step := time.NewTicker(leadEvery), time.NewTicker(followEvery)
	defer try.Stop()
	defer step.Stop()
	unknown, failing := false, false // so that each is logged once
	for {
		select {
		case <-ctx.Done():
			return false
		case <-step.C:
			in.follower.step(ctx)
		case <-in.writer.due:
			in.follower.step(ctx)
		case <-try.C:
			if !in.eligible() {
				continue
			}
			leads, err := in.shared.TryLead(ctx)
			if err != nil && !unknown && ctx.Err() == nil {
				in.log.Warn("it is not known who leads", "error", err)
			}
			if unknown = err != nil; !leads {
				continue
			}
			cancel()
			wg.Wait()
			in.writer.lost = in.shared.Lost()
			if err := in.takeOver(ctx); err == nil {
				return true
			} else if !failing && ctx.Err() == nil {
				failing = true
				in.log.Error("history not restored", "error", err)
			}
		}
	}
}

// takeOver restores the state that the last leader has left, as after a restart, beside the one that pages show. Then it takes its
// place, and what this node has not acknowledged is folded into it: that may have been folded by the last leader, or not.
func (in *Ingester) takeOver(ctx context.Context) error {
	start := in.now()
	fresh, err := New(in.options)
	if err != nil {
		return err
	}
	if err := fresh.restore(ctx); err != nil {
		return err
	}
	in.folding.Lock()
	defer in.folding.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	var events []state.Event
	batches := append(slices.Clone(in.follower.batches), keptBatch{pendingBatch: in.pending})
	for i := range batches {
		if err := state.EachJournaled(batches[i].journal, func(s *state.SavedEvent) { events = append(events, s.Event) }); err != nil {
			in.log.Error("events not folded again", "error", err)
		}
	}
	before := in.cluster
	in.cluster = fresh.cluster
	saved, unread := in.readStored(ctx, events)
	if unread != nil {
		in.cluster = before
		return history.ErrUnreachable
	}
	in.follower.take()
	in.pending.take()
	for i := range batches {
		if batches[i].stream != nil {
			in.pending.stream, in.pending.tag = batches[i].stream, batches[i].tag
		}
		in.pending.messages += batches[i].messages
	}
	in.pending.writingBytes, in.pending.writingEvents, in.pending.oldest = 0, 0, time.Time{}
	in.lost, in.rollups, in.omitted = fresh.lost, fresh.rollups, fresh.omitted
	in.writer.entries, in.writer.last, in.writer.savedTasks = fresh.writer.entries, fresh.writer.last, fresh.writer.savedTasks
	in.restoring.Store(fresh.restoring.Load())
	in.applyRead(ctx, events, saved, nil, in.applyAgain)
	in.leads.Store(true)
	in.notify()
	in.log.Info("has taken over", "events", len(events), "took_ms", in.now().Sub(start).Milliseconds())
	return nil
}

// applyAgain folds an event that was counted when it was received, by this process, but not in what is stored. mu is held.
func (in *Ingester) applyAgain(e *state.Event) {
	ch := in.cluster.Apply(e)
	in.lost.Add(e, ch)
	in.rollups.Add(e, ch)
	in.pending.add(e, ch)
}

// stepDown has this process follow. What it has not written is kept like what another leader has not: if that was written all the
// same, the next leader has it.
func (in *Ingester) stepDown() {
	w := &in.writer
	in.mu.Lock()
	failed := w.failed
	deferred := in.deferred
	in.deferred = nil
	for i := range deferred { // the next leader finds out whether they are new
		in.apply(&deferred[i])
	}
	in.rollups = rollup.Recorder{} // the next leader counts by the journal
	in.leads.Store(false)
	in.mu.Unlock()
	w.failed, w.failures, w.entries, w.last = nil, 0, nil, checkpoint{}
	in.setStoreHealth(StoreHealth{})
	in.follower.after = max(in.follower.after, in.shared.Written())
	if failed != nil {
		in.follower.keep(failed.pendingBatch)
	}
	in.log.Warn("another node leads, or may: this one follows")
	in.Notify()
}
