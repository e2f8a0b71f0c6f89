package ingest

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// restore brings back what the last monitor left: the checkpoint, the tasks, and the events that came after.
// What cannot be read is left out, and said.
func (m *Ingester) restore(ctx context.Context) error {
	start := m.now()
	tasks, events, unreadable := 0, 0, 0
	var left int64 // when the last monitor wrote last, µs
	try := func(err error) {
		if err == nil {
			return
		}
		if unreadable++; unreadable == 1 {
			m.log.Error("part of the history not read", "error", err)
		}
	}
	err := m.store.Restore(ctx, history.RestoreOptions{
		MaxTasks: m.maxTasks,
		Checkpoint: func(c history.Checkpoint) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			left = c.At
			m.cluster.RestoreClock(c.Clock)
			for _, saved := range c.Workers {
				try(m.cluster.LoadWorker(saved))
			}
			return nil
		},
		Task: func(id string, saved []byte) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			tasks++
			try(m.cluster.Load(id, saved))
			return nil
		},
		Omitted: func(p state.Position) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.cluster.SetLowWaterMark(p)
			return nil
		},
		Journal: func(number uint64, journal []byte, checkpointed bool) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			try(m.cluster.Replay(journal, func(e *state.Event, ch state.Change) {
				if events++; !checkpointed {
					m.minutes.Replay(e, ch)
				}
			}))
			m.writer.entries = append(m.writer.entries, entry{number: number})
			if checkpointed {
				m.writer.last.entry = number
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	m.restoreDone(left)
	m.log.Info("history restored", "tasks", tasks, "events", events, "unreadable", unreadable,
		"took_ms", m.now().Sub(start).Milliseconds())
	return nil
}

// finish says that all is there, and when the last monitor wrote last, µs; 0 if there was none. From then until the first
// connection nobody listened.
func (m *Ingester) restoreDone(left int64) {
	m.healthMu.Lock()
	if left != 0 {
		m.outages.begin(time.UnixMicro(left))
	}
	m.healthMu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if left != 0 && m.outages.forgets { // which never changes
		m.cluster.Resume(left)
		m.missed.begin(m.cluster.Workers())
	}
	m.cluster.Resume(m.time().UnixMicro())
	m.writer.keepEntries(m.cluster.Unsaved())
	m.restored = true
}
