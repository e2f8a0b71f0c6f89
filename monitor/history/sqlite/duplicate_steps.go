package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/state"
)

const (
	stepDuration = 20 * time.Millisecond // target for a transaction
	stepInterval = time.Second           // between looks for work
	maxStep      = 2_000                 // rows in one transaction
	maxSkim      = 50_000                // rows of other names that one transaction passes over
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

// step is what is yet to be done: tasks with a name, or all if it is empty.
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
		err := t.get(next, nil, &s.name, &s.done, &s.last) // a rule may have been saved meanwhile
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
			return t.exec(`DELETE FROM duplicate_steps WHERE name = ?`, s.name)
		}
		return t.exec(`UPDATE duplicate_steps SET done = ? WHERE name = ?`, s.done, s.name)
	})
}

// callStep groups up to n tasks after s.done, and moves that on.
func (t *tx) callStep(s *step, n int) error {
	type row struct {
		callRow

		view state.Task
	}
	query := `SELECT ` + callColumns + `, id, body FROM tasks JOIN events USING (task) WHERE task > ? AND task <= ? ORDER BY task LIMIT ?`
	args := []any{s.done, s.last, n}
	to := s.last
	if s.name != "" {
		to = min(s.last, s.done+maxSkim)
		name, ok := t.db.symbols.symbol(s.name)
		if !ok {
			s.done = s.last
			return nil
		}
		query = `SELECT ` + callColumns + `, id, body FROM tasks NOT INDEXED JOIN events USING (task)
			WHERE task > ? AND task <= ? AND name = ? ORDER BY task LIMIT ?`
		args = []any{s.done, to, name, n}
	}
	var found []row
	var reader state.Reader
	err := t.each(query, args, func(rows *sql.Rows) error {
		var r row
		var id any
		var events []byte
		var err error
		if r.callRow, err = t.scanCall(rows, &id, &events); err != nil {
			return err
		}
		if r.view, err = reader.Task(idText(id), events); err != nil {
			t.db.log.Warn("events of a task are unreadable", "id", idText(id), "error", err)
			r.view = state.Task{ID: idText(id)}
		}
		found = append(found, r)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range found {
		old := &found[i].callRow
		before := old
		if s.name != "" {
			before = nil // it may have been found by another rule
		}
		// What depends on workers is not among saved events: the row knows.
		r, err := t.callOf(&found[i].view, before)
		if err == nil {
			r.task, r.span = old.task, old.span
			if found[i].view.OwnDuplicates()&state.Skipped != 0 {
				r.span = duplicates.Span{}
			}
			err = t.changeCall(r, old)
		}
		if err != nil {
			return err
		}
	}
	if s.done = to; len(found) == n {
		s.done = found[n-1].task
	}
	return nil
}
