package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

const (
	stepDuration = 20 * time.Millisecond // target for a transaction
	stepInterval = time.Second           // between looks for work
	maxStep      = 2_000                 // rows in one transaction
)

// callLoop looks at tasks that nothing has grouped yet, or to which a new rule applies, until ctx ends, at most half of
// the time.
func (d *DB) callLoop(ctx context.Context) error {
	n := maxStep / 20
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		begin := time.Now()
		more, err := d.callSome(ctx, n)
		took := time.Since(begin)
		switch {
		case err != nil && ctx.Err() == nil:
			d.log.WarnContext(ctx, "grouping of duplicates failed", "error", err)
			timer.Reset(10 * stepInterval)
		case !more:
			timer.Reset(stepInterval)
		default:
			n = max(min(n*int(stepDuration)/int(max(took, 1)), 2*n, maxStep), 1)
			timer.Reset(min(took, stepInterval))
		}
	}
}

// step is what is yet to be done: tasks with a name.
type step struct {
	name       string
	done, last int64
}

// callSome looks at up to n tasks and reports whether there are more.
func (d *DB) callSome(ctx context.Context, n int) (more bool, err error) {
	var s step
	const next = `SELECT name, done, last FROM duplicate_steps ORDER BY name LIMIT 1`
	err = d.read.QueryRowContext(ctx, next).Scan(&s.name, &s.done, &s.last)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, d.update(ctx, func(t *tx) error {
		err := t.Get(next, nil, &s.name, &s.done, &s.last) // a rule may have been saved meanwhile
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = t.callStep(&s, n)
		}
		if err != nil {
			return err
		}
		if s.done >= s.last {
			return t.Exec(`DELETE FROM duplicate_steps WHERE name = ?`, s.name)
		}
		return t.Exec(`UPDATE duplicate_steps SET done = ? WHERE name = ?`, s.done, s.name)
	})
}

// callStep groups up to n tasks after s.done, and moves that on.
func (t *tx) callStep(s *step, n int) error {
	var changes []change
	var views []state.Task
	var reader state.Reader
	err := t.Each(`SELECT `+callColumns+`, id, body FROM tasks WHERE task > ? AND task <= ? AND name = ? ORDER BY task LIMIT ?`,
		[]any{s.done, s.last, s.name, n}, func(rows *sql.Rows) error {
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
	if s.done = s.last; len(changes) == n {
		s.done = changes[n-1].old.task
	}
	return t.changeCalls(changes)
}
