package ingest

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

const (
	restoreFirst = 2_000 // finished tasks in memory when the first page is shown: more than that shows
	restoreChunk = 500   // finished tasks that are loaded in one go afterwards, for some ms
)

// restore loads the state of the last process: the checkpoint, the unfinished tasks and the newest others, and the journal. The rest
// of what memory can hold is read from the store until restoreRest has loaded it. It skips and logs what cannot be read.
func (in *Ingester) restore(ctx context.Context) error {
	start := in.now()
	tasks, events, unreadable := 0, 0, 0
	var left int64 // when the last process wrote last, µs
	try := func(err error) {
		if err == nil {
			return
		}
		if unreadable++; unreadable == 1 {
			in.log.Error("part of the history not read", "error", err)
		}
	}
	away := false
	load := func(id string) {
		var saved []byte
		if !away {
			saved, away = in.savedTask(ctx, id)
		}
		in.load(id, saved)
	}
	err := in.store.Restore(ctx, history.RestoreOptions{
		MaxTasks: min(in.restoreFirst, in.maxTasks), MaxWithJournal: in.maxTasks,
		Checkpoint: func(c history.Checkpoint) error {
			in.mu.Lock()
			defer in.mu.Unlock()
			left = c.At
			in.cluster.RestoreClock(c.Clock)
			for _, saved := range c.Workers {
				try(in.cluster.LoadWorker(saved))
				try(in.lost.LoadWorker(saved))
			}
			return nil
		},
		Task: func(id string, saved []byte) error {
			in.mu.Lock()
			defer in.mu.Unlock()
			tasks++
			try(in.cluster.Load(id, saved))
			return nil
		},
		Omitted: func(p state.Position) error {
			in.mu.Lock()
			defer in.mu.Unlock()
			in.cluster.SetLowWaterMark(p)
			in.omitted = &p
			in.restoring.Store(true)
			return nil
		},
		Journal: func(number uint64, journal []byte, checkpointed bool) error {
			in.mu.Lock()
			defer in.mu.Unlock()
			try(in.cluster.Replay(journal, load, func(e *state.Event, ch state.Change) {
				if events++; !checkpointed {
					in.rollups.Replay(e, ch)
					in.lost.Add(e, ch)
				}
			}))
			in.writer.entries = append(in.writer.entries, entry{number: number})
			if checkpointed {
				in.writer.last.entry = number
			}
			if away {
				return history.ErrUnreachable
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	in.restoreDone(left)
	in.log.Info("history restored", "tasks", tasks, "events", events, "unreadable", unreadable,
		"took_ms", in.now().Sub(start).Milliseconds())
	return nil
}

// restoreDone marks the state as restored. left is when the last process wrote last, µs, 0 if there was none: from then until
// the first connection, nobody received events.
func (in *Ingester) restoreDone(left int64) {
	in.healthMu.Lock()
	if left != 0 {
		in.outages.begin(time.UnixMicro(left))
	}
	in.healthMu.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	if left != 0 && in.outages.ephemeral { // which never changes
		in.cluster.Resume(left)
		in.missed.begin(in.cluster.Workers())
	}
	in.cluster.Resume(in.time().UnixMicro())
	in.writer.keepEntries(in.cluster.Unsaved())
	in.restored.Store(true)
}

// restoreRest loads finished tasks that restore has left to the store, newest change first, as long as there is room for them. Until
// then, the store must not remove any: one that was read would stay in memory for ever.
func (in *Ingester) restoreRest(ctx context.Context) {
	if in.omitted == nil {
		return
	}
	defer in.Notify()
	defer in.restoring.Store(false)
	start, loaded := in.now(), 0
	in.mu.RLock()
	room := in.maxTasks - in.cluster.Counts().Tasks
	in.mu.RUnlock()
	for from := in.omitted; from != nil && loaded < room; {
		tasks, left, err := in.store.RestoreMore(ctx, *from, min(restoreChunk, room-loaded))
		if err != nil {
			if ctx.Err() == nil {
				in.log.Error("older tasks not loaded: they are read from the history", "error", err)
			}
			return
		}
		if !in.loadAbove(tasks, left) {
			break
		}
		loaded, from = loaded+len(tasks), left
	}
	in.log.Info("older tasks loaded", "tasks", loaded, "took_ms", in.now().Sub(start).Milliseconds())
}

// loadAbove loads tasks, which are all that the store has above left and memory lacks. It reports false if memory is full.
func (in *Ingester) loadAbove(tasks []history.SavedTask, left *state.Position) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	defer in.notify()
	for _, t := range tasks {
		if in.cluster.Evicted() > 0 {
			return false
		}
		if err := in.cluster.Load(t.ID, t.Events); err != nil {
			in.log.Error("stored task not read", "id", t.ID, "error", err)
		}
	}
	if in.cluster.Evicted() > 0 {
		return false
	}
	in.cluster.LoadedAbove(left)
	return true
}
