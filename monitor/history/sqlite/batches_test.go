package sqlite_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/state"
)

// testBatches returns what a monitor writes of n typical tasks, from their first events to their last, which arrive
// in messages of a few: batches of at least chunk tasks with the journal of their events. The same arguments
// give the same batches.
func testBatches(tb testing.TB, n, message, chunk int) []history.Batch {
	tb.Helper()
	batches, err := makeBatches(n, message, chunk)
	if err != nil {
		tb.Fatal(err)
	}
	return batches
}

func makeBatches(n, message, chunk int) (batches []history.Batch, err error) {
	c := state.New(state.Options{MaxTasks: n, Track: true})
	var d celery.Decoder
	var journal []byte
	received := int64(0) // each event has a receipt of its own
	bodies := simulate.Typical(3*n, message)
	for i, body := range bodies {
		d.Decode(body, 1_767_603_600_000_000, func(e *state.Event) {
			received += 1000
			e.ReceivedMicros += received
			if change := c.Apply(e); change.New {
				journal = state.AppendEvent(journal, e, change.Clock)
			}
		})
		if c.Unsaved() < chunk && i < len(bodies)-1 {
			continue
		}
		b := history.Batch{Journal: journal}
		for _, u := range c.TakeUnsaved(c.Unsaved()) {
			b.Tasks = append(b.Tasks, history.Task(u))
		}
		if err := c.Saved(true, nil); err != nil {
			return nil, fmt.Errorf("fold typical events: %w", err)
		}
		batches, journal = append(batches, b), nil
	}
	return batches, nil
}

// written returns the tasks that batches leave behind, and their journals.
func written(batches []history.Batch) (tasks map[string]string, journal []string) {
	tasks = make(map[string]string)
	for _, b := range batches {
		journal = append(journal, string(b.Journal))
		for _, t := range b.Tasks {
			tasks[t.View.ID] = string(t.Events)
		}
	}
	return tasks, journal
}

// restored returns the tasks that a store has, and its journal.
func restored(d history.Store) (tasks map[string]string, journal []string, err error) {
	tasks = make(map[string]string)
	err = d.Restore(context.Background(), history.RestoreOptions{
		MaxTasks:   1 << 30,
		Checkpoint: func(history.Checkpoint) error { return nil },
		Task: func(id string, events []byte) error {
			if _, twice := tasks[id]; twice {
				return fmt.Errorf("task %s is there twice", id)
			}
			tasks[id] = string(events)
			return nil
		},
		Omitted: func(state.Position) error { return nil },
		Journal: func(_ uint64, events []byte, _ bool) error {
			journal = append(journal, string(events))
			return nil
		},
	})
	return tasks, journal, err
}
