package sqlite_test

import (
	"testing"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
)

// BenchmarkRestore reads 200,000 of a million tasks, without and with a cluster that folds them.
func BenchmarkRestore(b *testing.B) {
	d, dir := benchHistory(b)
	closed(b, d)
	for name, fold := range map[string]bool{"read": false, "fold": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				restore(b, dir, fold)
			}
		})
	}
}

// restore opens a history and reads what a monitor needs, and makes a cluster of it if it is to fold.
func restore(b *testing.B, dir string, fold bool) {
	b.Helper()
	d, err := sqlite.Open(b.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	defer closed(b, d)
	c, n := state.New(state.Options{Track: true}), 0
	err = d.Restore(b.Context(), history.RestoreOptions{
		MaxTasks:   200_000,
		Checkpoint: func(history.Checkpoint) error { return nil },
		Task: func(id string, events []byte) error {
			n++
			if !fold {
				return nil
			}
			return c.Load(id, events)
		},
		Omitted: func(state.Position) error { return nil },
		Journal: func(uint64, []byte, bool) error { return nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(n), "tasks")
}
