// Package historycopy copies a history from SQLite to PostgreSQL.
package historycopy

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/postgres"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
)

// atOnce is how many tasks are written in one transaction.
const atOnce = 1_000

// before has the tables that tasks refer to as they are written, and after those that are copied then. Other tables follow from
// what is copied.
func before() []string {
	return []string{"outbox", "outbox_nodes", "dead_letters", "idempotency", "failures", "duplicate_rules"}
}

func after() []string {
	return []string{
		"audit", "outbox_samples", "views", "marks", "sessions", "tokens", "alert_rules", "alert_firings", "alert_records", "snapshots", "workers",
		"journal",
	}
}

// Copy copies all of a history. It goes on where an earlier call has ended. progress is told how many tasks are copied.
func Copy(ctx context.Context, from *sqlite.DB, to *postgres.DB, progress func(tasks int)) error {
	last, err := to.BeginCopy(ctx)
	if err != nil {
		return err
	}
	if err := copyTables(ctx, from, to, before()); err != nil {
		return err
	}
	if err := to.ReloadRules(ctx); err != nil {
		return err
	}
	for n := 0; ; {
		found, err := from.TasksAfter(ctx, last, atOnce)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			break
		}
		tasks := make([]history.Task, len(found))
		for i, t := range found {
			tasks[i], last = t.Task, t.Number
		}
		if err := to.CopyTasks(ctx, last, tasks); err != nil {
			return err
		}
		n += len(tasks)
		progress(n)
	}
	if err := copyTables(ctx, from, to, after()); err != nil {
		return err
	}
	if err := copyRollups(ctx, from, to); err != nil {
		return err
	}
	return end(ctx, from, to)
}

func copyTables(ctx context.Context, from *sqlite.DB, to *postgres.DB, names []string) error {
	for _, name := range names {
		_, err := to.CopyTable(ctx, name, func(columns []string, f func(values []any) error) error {
			return from.EachRow(ctx, name, columns, f)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func copyRollups(ctx context.Context, from *sqlite.DB, to *postgres.DB) error {
	for _, span := range history.RollupSpans() {
		r := history.RollupRange{From: time.Unix(0, 0), To: time.Now().AddDate(1, 0, 0), Span: span.Length, Wait: true, Run: true}
		_, err := to.CopyRollups(ctx, int64(span.Length/time.Minute), func(f func(history.Rollup) error) error { return from.Rollups(ctx, r, f) })
		if err != nil {
			return err
		}
	}
	return nil
}

// end copies the checkpoint, which says how much of the journal was counted.
func end(ctx context.Context, from *sqlite.DB, to *postgres.DB) error {
	var c history.Checkpoint
	var counted uint64
	err := from.Restore(ctx, history.RestoreOptions{
		Checkpoint: func(saved history.Checkpoint) error { c = saved; return nil },
		Task:       func(string, []byte) error { return nil },
		Omitted:    func(state.Position) error { return nil },
		Journal: func(entry uint64, _ []byte, checkpointed bool) error {
			if checkpointed {
				counted = entry
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	return to.EndCopy(ctx, c, counted)
}
