package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/state"
)

// ledger is a store that checks what it is told to forget: every task that a journal entry tells of must have been
// saved with it or after it, and a checkpoint too.
type ledger struct {
	history.Store
	t       *testing.T
	entries map[uint64]map[string]bool // ids of the tasks that are still to be saved, by entry
	covered uint64                     // newest entry with a checkpoint
	newest  uint64
	forgot  int
	fails   atomic.Int32 // writes that fail before the next one works
}

func (l *ledger) Write(ctx context.Context, b history.Batch) (history.WriteResult, error) {
	if l.fails.Add(-1) >= 0 {
		return history.WriteResult{}, errDisk
	}
	w, err := l.Store.Write(ctx, b)
	if err != nil {
		return w, err
	}
	for number := range l.entries {
		if number > b.TrimJournal {
			continue
		}
		if left := len(l.entries[number]); left > 0 || number > l.covered {
			l.t.Errorf("entry %d is forgotten with %d tasks not saved, checkpoint %d", number, left, l.covered)
		}
		delete(l.entries, number)
		l.forgot++
	}
	if w.JournalEntry > 0 {
		l.newest, l.entries[w.JournalEntry] = w.JournalEntry, idsIn(l.t, b.Journal)
	}
	if b.Checkpoint != nil {
		l.covered = l.newest
	}
	for _, task := range b.Tasks {
		if _, known := w.Existing[task.View.ID]; known {
			continue
		}
		for _, ids := range l.entries {
			delete(ids, task.View.ID)
		}
	}
	return w, nil
}

// idsIn returns the ids of the tasks that a journal tells of.
func idsIn(t *testing.T, journal []byte) map[string]bool {
	t.Helper()
	ids := make(map[string]bool)
	err := state.New(state.Options{}).Replay(journal, nil, func(e *state.Event, _ state.Change) { ids[e.ID] = true })
	if err != nil {
		t.Errorf("journal: %v", err)
	}
	return ids
}

// TestJournalIsKeptUntilItsTasksAreSaved reads a burst, tells of tasks that memory has forgotten, and lets writes
// fail on the way.
func TestJournalIsKeptUntilItsTasksAreSaved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{Limit: 1 << 20})
		l := &ledger{Store: memoryStore(t), t: t, entries: map[uint64]map[string]bool{}}
		m := run(t, ingest.Options{Broker: b, Store: l, State: state.Options{MaxTasks: 100}})
		told := uint64(0)
		for _, kind := range []string{"received", "started", "succeeded"} {
			for i := range 2_000 {
				publish(t, b, body(kind, fmt.Sprint("t", i), i+1))
			}
			told += 2_000
			poll(t, "the events", func() bool { return m.Health().Events >= told })
			l.fails.Store(3)
			b.Fail(errors.New("cable pulled"))
		}
		publish(t, b, body("received", "last", 1))
		poll(t, "the last task", func() bool { _, err := m.read.Task(t.Context(), "last"); return err == nil })
		saved(t, m, told)
		<-time.After(15 * time.Second) // for the last checkpoint
		synctest.Wait()
		if len(l.entries) > 0 || l.forgot < 3 {
			t.Errorf("%d entries are kept and %d were forgotten, want none kept in the end", len(l.entries), l.forgot)
		}
	})
}

// brief is a store that keeps workers for an hour.
type brief struct{ history.Store }

func (brief) RetentionRules() history.RetentionRules {
	return history.RetentionRules{Workers: time.Hour}
}

func TestOfflineWorkersAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, s := inproc.New(inproc.Options{}), memoryStore(t)
		m := run(t, ingest.Options{Broker: b, Store: brief{s}})
		beat := func(name string, clock int) {
			publish(t, b, fmt.Appendf(nil, `{"type":"worker-heartbeat","hostname":%q,"pid":7,"clock":%d,"freq":2.0,"timestamp":%d}`, name, clock, time.Now().Unix()))
		}
		beat("pod-1", 1)
		for minute := range 62 {
			beat("steady", minute+1)
			<-time.After(time.Minute)
		}
		if gone, steady := statusOf(m, "pod-1"), statusOf(m, "steady"); gone != "" || steady == "" {
			t.Errorf("pod-1 is %q and steady %q, want the former forgotten", gone, steady)
		}
		saved(t, m, 63)
		var left []string
		err := s.Restore(t.Context(), history.RestoreOptions{
			Checkpoint: func(c history.Checkpoint) error {
				left = slices.Collect(maps.Keys(c.Workers))
				return nil
			},
			Task:    func(string, []byte) error { return nil },
			Omitted: func(state.Position) error { return nil },
			Journal: func(uint64, []byte, bool) error { return nil },
		})
		if err != nil || !slices.Equal(left, []string{"steady"}) {
			t.Errorf("saved workers = %q, %v, want steady alone", left, err)
		}
	})
}
