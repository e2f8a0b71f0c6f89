package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

// maxSkim is how many rows of other names one transaction passes over.
const maxSkim = 50_000

// groupCalls groups tasks until ctx ends.
func (d *DB) groupCalls(ctx context.Context) error {
	return tables.GroupCalls(ctx, tableEngine{d}, func(t tables.Tx, s *tables.CallStep, n int) error { return t.(tableTx).callStep(s, n) })
}

// callStep groups up to n tasks after s.Done, and moves that on.
func (t *tx) callStep(s *tables.CallStep, n int) error {
	type row struct {
		callRow

		view state.Task
	}
	query := `SELECT ` + callColumns + `, id, body FROM tasks JOIN events USING (task) WHERE task > ? AND task <= ? ORDER BY task LIMIT ?`
	args := []any{s.Done, s.Last, n}
	to := s.Last
	if s.Name != "" {
		to = min(s.Last, s.Done+maxSkim)
		name, ok := t.db.symbols.symbol(s.Name)
		if !ok {
			s.Done = s.Last
			return nil
		}
		query = `SELECT ` + callColumns + `, id, body FROM tasks NOT INDEXED JOIN events USING (task)
			WHERE task > ? AND task <= ? AND name = ? ORDER BY task LIMIT ?`
		args = []any{s.Done, to, name, n}
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
		if s.Name != "" {
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
	if s.Done = to; len(found) == n {
		s.Done = found[n-1].task
	}
	return nil
}

// LearnArguments groups a stored task whose arguments were learned elsewhere.
func (d *DB) LearnArguments(ctx context.Context, taskID string, args, kwargs []byte) (err error) {
	defer annotate(&err, "group task")
	arguments, ok := duplicates.ParseArguments(args, kwargs)
	if !ok || d.write == nil {
		return nil
	}
	const isUngrouped = `SELECT count(*) FROM tasks WHERE id = ? AND call <= x'00' AND name IS NOT NULL`
	if n, err := tables.Number[int](ctx, d.read, isUngrouped, idValue(taskID)); n == 0 || err != nil {
		return err
	}
	return d.update(ctx, func(t *tx) error {
		stored, err := t.stored(idValue(taskID))
		old := stored.callRow
		if errors.Is(err, sql.ErrNoRows) || err == nil && (old.known() || old.name == 0) {
			return nil
		}
		if err != nil {
			return err
		}
		name := t.symbolText(old.name)
		call := arguments.Call(name, d.calls.Of(name))
		if !call.Known() {
			return nil
		}
		found := old
		found.call, found.dup = call[:], old.dup&int64(state.OwnDuplicates)
		return t.changeCall(found, &old)
	})
}

// changeCall saves a call, and marks, of a stored task.
func (t *tx) changeCall(r callRow, old *callRow) error {
	p, err := t.prepare(r, old)
	if err != nil {
		return err
	}
	if !bytes.Equal(p.call, old.call) || p.dup != old.dup || old.call == nil {
		if err := t.exec(`UPDATE tasks SET call = ?, dup = ? WHERE task = ?`, p.call, p.dup, p.task); err != nil {
			return err
		}
	}
	return t.regroup(&p, old)
}
