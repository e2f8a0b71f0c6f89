package postgres

import (
	"context"
	"database/sql"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

// groupCalls groups tasks until ctx ends.
func (d *DB) groupCalls(ctx context.Context) error {
	return tables.GroupCalls(ctx, tableEngine{d}, func(t tables.Tx, s *tables.CallStep, n int) error { return t.(*tx).callStep(s, n) })
}

// callStep groups up to n tasks after s.Done, and moves that on.
func (t *tx) callStep(s *tables.CallStep, n int) error {
	var changes []change
	var views []state.Task
	var reader state.Reader
	err := t.Each(`SELECT `+callColumns+`, id, body FROM tasks WHERE task > ? AND task <= ? AND name = ? ORDER BY task LIMIT ?`,
		[]any{s.Done, s.Last, s.Name, n}, func(rows *sql.Rows) error {
			var id string
			var events sql.RawBytes
			old, _, err := scanCall(rows, &id, &events)
			if err != nil {
				return err
			}
			v, err := reader.Task(id, events)
			if err != nil {
				t.db.log.Warn("events of a task are unreadable", "id", id, "error", err)
				v = state.Task{ID: id}
			}
			changes, views = append(changes, change{old: &old}), append(views, v)
			return nil
		})
	if err != nil {
		return err
	}
	records := make([]record, len(changes)) // without old: what it had may have been found by another rule
	for i := range changes {
		records[i].Task = &history.Task{View: views[i]}
	}
	if err := t.findCalls(records); err != nil {
		return err
	}
	for i := range changes {
		// What depends on workers is not among saved events: the row knows.
		old, r := changes[i].old, &records[i].call
		r.task, r.week, r.span = old.task, old.week, old.span
		if views[i].OwnDuplicates()&state.Skipped != 0 {
			r.span = duplicates.Span{}
		}
		changes[i].new = r
	}
	if s.Done = s.Last; len(changes) == n {
		s.Done = changes[n-1].old.task
	}
	return t.changeCalls(changes)
}

// LearnArguments groups a stored task whose arguments were learned elsewhere.
func (d *DB) LearnArguments(ctx context.Context, taskID string, args, kwargs []byte) (err error) {
	defer annotate(&err, "group task")
	arguments, ok := duplicates.ParseArguments(args, kwargs)
	if !ok || d.write == nil {
		return nil
	}
	return d.update(ctx, func(t *tx) error {
		old, err := t.stored([]string{taskID})
		if err != nil || old[taskID] == nil {
			return err
		}
		before := old[taskID].callRow
		if before.call != "" || before.name == "" {
			return nil
		}
		call := arguments.Call(before.name, d.calls.Of(before.name))
		if !call.Known() {
			return nil
		}
		after := before
		after.call, after.dup = string(call[:]), before.dup&int64(state.OwnDuplicates)
		return t.changeCalls([]change{{&before, &after}})
	})
}

// changeCalls saves calls, and marks, of stored tasks.
func (t *tx) changeCalls(changes []change) error {
	marked, err := t.regroup(changes)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if *c.old == *c.new {
			continue
		}
		if err := t.Exec(`UPDATE tasks SET call = $1, dup = $2 WHERE week = $3 AND task = $4`, []byte(c.new.call), c.new.dup, c.new.week, c.new.task); err != nil {
			return err
		}
	}
	return t.mark(marked)
}
