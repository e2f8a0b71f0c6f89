package longhistory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
)

const (
	batch     = 1_000  // tasks of a transaction
	inMemory  = 20_000 // tasks of the cluster that is saved
	completed = "complete"
)

// Build writes n tasks into the history of dir, with the index of their texts and the counts of charts, and goes on where an earlier
// call has ended. progress is told how many are written.
func Build(ctx context.Context, dir string, n Tasks, progress func(what string, done int)) (err error) {
	mark := filepath.Join(dir, completed)
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	d, err := sqlite.Open(ctx, sqlite.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	w := writer{store: d, tasks: n, cluster: state.New(state.Options{Track: true, MaxTasks: inMemory})}
	if err := w.resume(ctx); err != nil {
		return err
	}
	for w.next < int(n) {
		if err := w.write(ctx); err != nil {
			return err
		}
		progress("written", w.next)
	}
	if err := d.IndexAll(ctx, func(indexed int) { progress("indexed", indexed) }); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o600)
}

// writer writes tasks.
type writer struct {
	store   *sqlite.DB
	tasks   Tasks
	next    int // task to write
	cluster *state.Cluster
	minutes rollup.Recorder
}

// resume finds the first task that is not written, and loads those that were changed last or have not ended.
func (w *writer) resume(ctx context.Context) error {
	low, high := 0, int(w.tasks)/batch
	for low < high {
		middle := (low + high) / 2
		_, err := w.store.Task(ctx, w.tasks.ID(middle*batch))
		switch {
		case err == nil:
			low = middle + 1
		case errors.Is(err, history.ErrNotFound):
			high = middle
		default:
			return err
		}
	}
	w.next = low * batch
	return w.store.Restore(ctx, history.RestoreOptions{
		MaxTasks: inMemory,
		Checkpoint: func(c history.Checkpoint) error {
			w.cluster.RestoreClock(c.Clock)
			for _, saved := range c.Workers {
				if err := w.cluster.LoadWorker(saved); err != nil {
					return err
				}
			}
			return nil
		},
		Task:    func(id string, events []byte) error { return w.cluster.Load(id, events) },
		Omitted: func(state.Position) error { return nil }, // all that changes is loaded
		Journal: func(uint64, []byte, bool) error { return nil },
	})
}

// write writes a batch.
func (w *writer) write(ctx context.Context) error {
	apply := func(e *state.Event) { w.minutes.Add(e, w.cluster.Apply(e)) }
	for range min(batch, int(w.tasks)-w.next) {
		for _, e := range w.tasks.Events(w.next) {
			apply(e)
		}
		if e := w.tasks.LateEnd(w.next); e != nil {
			apply(e)
		}
		w.next++
	}
	b := history.Batch{At: w.tasks.Micros(w.next), Checkpoint: &history.Checkpoint{
		Clock: w.cluster.Clock(), Counts: w.cluster.Counts(), Workers: make(map[string][]byte), Rollups: w.minutes.Take(),
	}}
	if err := w.cluster.SaveWorkers(nil, func(name string, saved []byte) { b.Checkpoint.Workers[name] = saved }); err != nil {
		return err
	}
	for _, u := range w.cluster.TakeUnsaved(w.cluster.Unsaved()) {
		b.Tasks = append(b.Tasks, history.Task(u))
	}
	written, err := w.store.Write(ctx, b)
	if err != nil {
		return err
	}
	if n := len(written.Existing); n > 0 {
		return fmt.Errorf("%d tasks were written before", n)
	}
	return w.cluster.Saved(true, nil)
}
