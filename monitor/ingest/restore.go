package ingest

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// restore loads the state of the last process: the checkpoint, the tasks, and the journal after it. It skips and logs what
// cannot be read.
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
	load := func(id string) { in.load(id, in.savedTask(ctx, id)) }
	err := in.store.Restore(ctx, history.RestoreOptions{
		MaxTasks: in.maxTasks,
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
