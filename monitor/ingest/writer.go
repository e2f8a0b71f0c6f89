package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/internal/retry"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/history"
)

// How the history is written.
const (
	writePause = 250 * time.Millisecond // between transactions while little is pending
	writeMuch  = 1_000                  // events, messages or tasks that end the pause
	writeTime  = 40 * time.Millisecond  // target for one transaction
	burstTime  = 150 * time.Millisecond // the same while many tasks wait: a task costs less in a larger transaction
	minChunk   = 50                     // tasks saved by one transaction
	maxChunk   = 10_000

	checkpointPause = 5 * time.Second
	checkpointBytes = 32 << 20 // of journal, if reached earlier

	maxWaiting = 64 << 20 // bytes of pending journal beyond which nothing more is received
	maxUnsaved = 100_000  // tasks beyond which nothing more is received
	maxSpare   = 4 << 20  // bytes of memory reused for the next journal

	minRetry   = 250 * time.Millisecond // bounds of the wait before a failed write is retried
	maxRetry   = 10 * time.Second
	finalWrite = 10 * time.Second // after Run was asked to stop
)

// UnsavedTarget is how many unsaved tasks the writer lets wait in a burst before it prefers them to the journal. A reader
// that reads as many usually reads all.
const UnsavedTarget = 20_000

// writer writes folded events to the journal, acknowledges them, and saves the tasks that they changed. The journal goes
// first, so that a burst is acknowledged at the rate of the disk; tasks follow, as many per transaction as keep it short. A
// journal entry is deleted once a checkpoint covers it and every task that was unsaved when it was written is saved.
type writer struct {
	in      *Ingester
	due     chan struct{}   // holds one element when much is pending
	written chan struct{}   // holds one element after a write
	stopped chan struct{}   // closed when nothing more is written
	lost    <-chan struct{} // closed when this process no longer leads, nil if it always does

	// Owned by the goroutine of run, and by restore before it.
	chunk      int           // tasks to save with the next transaction
	failed     *job          // to be retried
	failures   int           // in a row
	pause      time.Duration // before the next attempt
	savedTasks int           // count of saves, of one task perhaps several
	entries    []entry
	last       checkpoint
}

// entry is a piece of the journal.
type entry struct {
	number      uint64
	neededUntil int // value of writer.savedTasks from which on it is not needed
}

// checkpoint describes the last one.
type checkpoint struct {
	at     time.Time
	bytes  int    // of journal since then
	events uint64 // folded until then
	entry  uint64 // newest journal entry that it covers
}

// job is one transaction.
type job struct {
	pendingBatch
	batch       history.Batch
	neededUntil int    // of the journal entry
	events      uint64 // folded until then
}

func newWriter(in *Ingester) writer {
	return writer{
		in: in, due: make(chan struct{}, 1), written: make(chan struct{}, 1), stopped: make(chan struct{}), chunk: writeMuch,
	}
}

// run writes until drained is closed and everything is saved, until this process no longer leads, or until ctx ends. Closing
// stopping retries a failed write at once.
func (w *writer) run(ctx context.Context, stopping, drained <-chan struct{}) {
	for ctx.Err() == nil && !closed(w.lost) {
		w.in.applyDeferred(ctx)
		final := closed(drained)
		j := w.take(final)
		switch {
		case j == nil && final:
			return
		case j != nil && !w.write(ctx, j):
			select {
			case <-time.After(w.pause):
			case <-w.lost:
			case <-stopping:
				stopping = nil
			case <-ctx.Done():
			}
		case !w.writeDue():
			w.wait(drained)
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// wait waits until the next transaction is due.
func (w *writer) wait(drained <-chan struct{}) {
	pause := time.NewTimer(writePause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-w.due:
	case <-drained:
	case <-w.lost:
	}
}

// wake ends wait if much is pending.
func (w *writer) wake(much bool) {
	if much {
		signal(w.due)
	}
}

// signal puts an element into a channel with a buffer of one.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *writer) writeDue() bool {
	w.in.mu.RLock()
	defer w.in.mu.RUnlock()
	return w.in.writeDue()
}

// writeDue reports whether so much is pending that it is to be written at once. mu is held.
func (in *Ingester) writeDue() bool {
	return max(in.pending.events, in.pending.messages, in.cluster.Unsaved()) >= writeMuch
}

// full reports whether so much is pending that nothing more must be received. mu is held.
func (in *Ingester) full() bool {
	return len(in.pending.journal)+in.pending.writingBytes > in.maxWaiting || max(in.cluster.Unsaved(), len(in.deferred)) > maxUnsaved
}

// waitForCapacity waits until more events may be received, or their stream has ended.
func (w *writer) waitForCapacity(ctx context.Context, stream broker.EventStream) error {
	full := func() bool {
		w.in.mu.RLock()
		defer w.in.mu.RUnlock()
		return w.in.full()
	}
	for full() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stream.Done():
			return fmt.Errorf("wait to receive events: %w", stream.Err())
		case <-w.written:
		}
	}
	return nil
}

// waitAcked waits until everything folded is written and acknowledged, or the writer has stopped.
func (w *writer) waitAcked() {
	unacked := func() int {
		w.in.mu.RLock()
		defer w.in.mu.RUnlock()
		return w.in.pending.unacked
	}
	for unacked() > 0 {
		w.wake(true)
		select {
		case <-w.written:
		case <-w.stopped:
			return
		}
	}
}

// take returns the next job, nil if there is none. A failed transaction is retried without its tasks, which by now may have
// newer events than its journal: they follow in the next one. The final transactions leave no journal to replay.
func (w *writer) take(final bool) *job {
	w.in.mu.Lock()
	defer w.in.mu.Unlock()
	if w.failed != nil {
		w.failed.neededUntil = w.savedTasks + w.in.cluster.Unsaved()
		return w.failed
	}
	j := &job{neededUntil: w.savedTasks + w.in.cluster.Unsaved(), events: w.in.events}
	for _, u := range w.in.cluster.TakeUnsaved(w.saveLimit()) {
		j.batch.Tasks = append(j.batch.Tasks, history.Task(u))
	}
	j.pendingBatch = w.in.pending.take()
	if len(w.in.deferred) > 0 { // of messages up to the newest
		w.in.pending.unread(&j.pendingBatch)
	}
	j.batch.Journal = j.journal
	if w.uncovered(j) && (final || w.checkpointDue(j)) && !w.in.restoring.Load() { // else it counted too few tasks
		j.batch.Checkpoint = w.in.checkpoint()
	}
	j.batch.At, j.batch.TrimJournal = w.in.time().UnixMicro(), w.forgettable()
	if j.empty() && j.messages == 0 {
		return nil
	}
	return j
}

// saveLimit is how many tasks to save: few in a burst, until UnsavedTarget wait.
func (w *writer) saveLimit() int {
	if w.in.pending.events >= writeMuch && w.in.cluster.Unsaved() < UnsavedTarget {
		return min(w.chunk, minChunk)
	}
	return w.chunk
}

// empty reports whether the store has nothing to do for a job.
func (j *job) empty() bool {
	return len(j.batch.Journal) == 0 && len(j.batch.Tasks) == 0 && j.batch.Checkpoint == nil && j.batch.TrimJournal == 0
}

// uncovered reports whether anything has changed since the last checkpoint.
func (w *writer) uncovered(j *job) bool {
	n := len(w.entries)
	return j.events != w.last.events || w.in.rollups.Changed() || n > 0 && w.entries[n-1].number > w.last.entry
}

func (w *writer) checkpointDue(j *job) bool {
	return w.last.bytes+len(j.journal) >= checkpointBytes || w.in.now().Sub(w.last.at).Abs() >= checkpointPause
}

// checkpoint copies everything to save but tasks. mu is held.
func (in *Ingester) checkpoint() *history.Checkpoint {
	c := &history.Checkpoint{Clock: in.cluster.Clock(), Workers: make(map[string][]byte), Rollups: in.rollups.Take(), Counts: in.cluster.Counts()}
	err := in.cluster.SaveWorkers(in.lost.Save, func(name string, saved []byte) {
		c.Workers[name] = saved
		if saved == nil {
			in.lost.Forget(name)
		}
	})
	if err != nil {
		in.log.Error("workers not saved", "error", err)
	}
	return c
}

// forgettable returns the newest journal entry that is no longer needed, 0 if there is none.
func (w *writer) forgettable() (number uint64) {
	for _, e := range w.entries {
		if e.number > w.last.entry || e.neededUntil > w.savedTasks {
			break
		}
		number = e.number
	}
	return number
}

// write executes a job and reports whether that succeeded.
func (w *writer) write(ctx context.Context, j *job) bool {
	var written history.WriteResult
	if !j.empty() {
		start := w.in.now()
		var err error
		if written, err = w.in.store.Write(ctx, j.batch); err != nil {
			w.fail(j, err)
			return false
		}
		took := w.in.now().Sub(start)
		w.adjustChunk(took, len(j.batch.Tasks), j.neededUntil-w.savedTasks)
		w.observe(j, took)
	}
	w.succeed(j, written)
	if j.stream != nil {
		if err := j.stream.Ack(j.tag); err != nil && !errors.Is(err, broker.ErrClosed) {
			w.in.log.Error("events not acknowledged", "error", err)
		}
	}
	w.in.mu.Lock()
	w.in.pending.written(&j.pendingBatch)
	w.in.mu.Unlock()
	signal(w.written)
	return true
}

// observe counts a transaction.
func (w *writer) observe(j *job, took time.Duration) {
	w.in.mu.Lock()
	defer w.in.mu.Unlock()
	lag := time.Duration(0)
	if !j.since.IsZero() {
		lag = max(w.in.now().Sub(j.since), 1)
	}
	w.in.recorder.ObserveWrite(took, lag)
}

// adjustChunk sets how many tasks the next transaction saves, by how long one of n took while so many waited.
func (w *writer) adjustChunk(took time.Duration, n, waiting int) {
	target := writeTime
	if waiting > UnsavedTarget/2 {
		target = burstTime
	}
	switch {
	case took > 2*target:
		w.chunk = max(w.chunk/2, minChunk)
	case took < target && n == w.chunk:
		w.chunk = min(w.chunk+w.chunk/4, maxChunk)
	}
}

// succeed records what a transaction has written.
func (w *writer) succeed(j *job, written history.WriteResult) {
	w.in.mu.Lock()
	before := w.in.cluster.Unsaved()
	err := w.in.cluster.Saved(true, written.Existing)
	saved := before - w.in.cluster.Unsaved()
	left := w.in.cluster.Unsaved()
	w.in.mu.Unlock()
	if err != nil {
		w.in.log.Error("stored events of a task not read", "error", err)
	}
	w.savedTasks += saved
	if written.JournalEntry != 0 {
		w.entries = append(w.entries, entry{written.JournalEntry, j.neededUntil})
	}
	if saved+len(written.Existing) != len(j.batch.Tasks) {
		w.keepEntries(left) // some have changed meanwhile and are queued again
	}
	for len(w.entries) > 0 && w.entries[0].number <= j.batch.TrimJournal {
		w.entries = w.entries[1:]
	}
	w.last.bytes += len(j.journal)
	if j.batch.Checkpoint != nil {
		w.last = checkpoint{at: w.in.now(), events: j.events, entry: max(w.last.entry, written.JournalEntry)}
		if n := len(w.entries); n > 0 {
			w.last.entry = w.entries[n-1].number
		}
	}
	if w.failed != nil {
		w.in.log.Info("history is written again", "failures", w.failures)
		w.in.setStoreHealth(StoreHealth{})
	}
	w.failed, w.failures = nil, 0
}

// keepEntries keeps every journal entry until all tasks that are unsaved now are saved.
func (w *writer) keepEntries(waiting int) {
	for i := range w.entries {
		w.entries[i].neededUntil = w.savedTasks + waiting
	}
}

// fail records a failed job, to be retried.
func (w *writer) fail(j *job, cause error) {
	w.in.mu.Lock()
	w.in.recorder.WriteFailed()
	if err := w.in.cluster.Saved(false, nil); err != nil {
		w.in.log.Error("tasks not put back", "error", err)
	}
	left := w.in.cluster.Unsaved()
	w.in.mu.Unlock()
	w.keepEntries(left)
	j.batch.Tasks = nil
	w.failed = j
	w.failures++
	w.pause = retry.After(w.failures, minRetry, maxRetry)
	w.in.log.Error("history not written", "error", cause, "failures", w.failures)
	now := w.in.now()
	h := StoreHealth{LastError: cause.Error(), FailedAt: now, Since: now, NextAttemptAt: now.Add(w.pause)}
	if w.failures > 1 {
		h.Since = w.in.Health().Store.Since
	}
	w.in.setStoreHealth(h)
}

// setStoreHealth records the state of writing.
func (in *Ingester) setStoreHealth(h StoreHealth) {
	in.healthMu.Lock()
	in.storeHealth = h
	in.healthMu.Unlock()
	in.Notify()
}
