package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state/query"
)

// Write commits b in one transaction.
func (d *DB) Write(ctx context.Context, b history.Batch) (history.WriteResult, error) {
	var w history.WriteResult
	err := explain(d.update(ctx, func(t *tx) (err error) {
		w, err = t.write(b)
		return err
	}))
	if ctx.Err() == nil || err == nil {
		d.noteWrite(err)
		d.noteDamage(err)
	}
	if err != nil {
		return history.WriteResult{}, fmt.Errorf("write history: %w", err)
	}
	return w, nil
}

func (t *tx) write(b history.Batch) (w history.WriteResult, err error) {
	if len(b.Journal) > 0 {
		entry, err := t.insert(`INSERT INTO journal (body) VALUES (?)`, b.Journal)
		if err != nil {
			return w, err
		}
		w.JournalEntry = uint64(entry)
	}
	for i := range b.Tasks {
		known, err := t.task(&b.Tasks[i])
		if err != nil {
			return w, err
		}
		if known != nil {
			if w.Existing == nil {
				w.Existing = make(map[string][]byte)
			}
			w.Existing[b.Tasks[i].View.ID] = known
		}
	}
	if b.At != 0 {
		if err := t.set(tables.MetaBatchAt, b.At); err != nil {
			return w, err
		}
	}
	if b.Checkpoint != nil {
		if err := t.checkpoint(b.Checkpoint); err != nil {
			return w, err
		}
		if err := tables.TakeSnapshot(tableTx{t}, b.At, b.Checkpoint); err != nil {
			return w, err
		}
	}
	if b.TrimJournal > 0 {
		err = t.exec(`DELETE FROM journal WHERE entry <= ?`, int64(b.TrimJournal))
	}
	return w, err
}

// checkpoint saves a checkpoint as of the newest journal entry.
func (t *tx) checkpoint(c *history.Checkpoint) error {
	if err := t.set(tables.MetaClock, c.Clock); err != nil {
		return err
	}
	var newest int64
	err := t.get(`SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'journal'`, nil, &newest)
	if err != nil {
		return err
	}
	if err := t.set(tables.MetaCheckpoint, newest); err != nil {
		return err
	}
	for name, body := range c.Workers {
		var err error
		if body == nil {
			err = t.exec(`DELETE FROM workers WHERE name = ?`, name)
		} else {
			err = t.exec(`INSERT INTO workers (name, body) VALUES (?, ?) ON CONFLICT DO UPDATE SET body = excluded.body`,
				name, string(body))
		}
		if err != nil {
			return err
		}
	}
	return t.addRollups(c.Rollups)
}

// set sets a value of the table meta.
func (t *tx) set(key string, value int64) error {
	return t.exec(`INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value`, key, value)
}

// task writes one task, or returns its saved events if it is there although Stored is false.
func (t *tx) task(s *history.Task) (known []byte, err error) {
	id := idValue(s.View.ID)
	columns, err := t.columns(s)
	if err != nil {
		return nil, err
	}
	if s.Stored {
		replaced, err := t.replace(id, columns, s)
		if replaced || err != nil {
			return nil, err
		}
	}
	call, err := t.callOf(&s.View, nil)
	if err != nil {
		return nil, err
	}
	p, err := t.prepare(call, nil)
	if err != nil {
		return nil, err
	}
	p.task, err = t.insert(insertTask, append(columns, p.call, p.dup, id)...)
	switch {
	case err != nil:
		return nil, err
	case p.task == 0:
		err := t.get(`SELECT body FROM events JOIN tasks USING (task) WHERE id = ?`, []any{id}, &known)
		return known, err
	}
	t.countInWorkflow(id, nil, partOf(&s.View, columns[nameColumn]))
	if err := t.regroup(&p, nil); err != nil {
		return nil, err
	}
	if err := t.rename(p.task, where.FormerNames(&s.View)); err != nil {
		return nil, err
	}
	if err := t.textChanged(p.task, where.Class(s.View.State), s.View.Stamp.Clock); err != nil {
		return nil, err
	}
	return nil, t.exec(`INSERT INTO events (task, body) VALUES (?, ?)`, p.task, s.Events)
}

// replace updates a stored task, false if there is none.
func (t *tx) replace(id any, columns []any, s *history.Task) (bool, error) {
	old, err := t.stored(id)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	call, err := t.callOf(&s.View, &old.callRow)
	if err != nil {
		return false, err
	}
	p, err := t.prepare(call, &old.callRow)
	if err == nil {
		err = t.textChanged(old.task, where.Class(s.View.State), s.View.Stamp.Clock)
	}
	if err == nil {
		err = t.exec(updateTask, append(columns, p.call, p.dup, old.task)...)
	}
	if err == nil {
		t.countInWorkflow(id, old.part(), partOf(&s.View, columns[nameColumn]))
		err = t.regroup(&p, &old.callRow)
	}
	if err == nil && old.flags&where.FlagRenamed != 0 {
		err = t.exec(`DELETE FROM former_names WHERE task = ?`, old.task)
	}
	if err == nil {
		err = t.rename(old.task, where.FormerNames(&s.View))
	}
	if err == nil {
		err = t.exec(`UPDATE events SET body = ? WHERE task = ?`, s.Events, old.task)
	}
	return err == nil, err
}

// storedRow is what replace needs of a stored task.
type storedRow struct {
	callRow
	workflowRow
}

func (t *tx) stored(id any) (old storedRow, err error) {
	err = t.each(`SELECT `+callColumns+`, `+workflowColumns+` FROM tasks WHERE id = ?`, []any{id}, func(rows *sql.Rows) (err error) {
		old.callRow, err = t.scanCall(rows, old.into()...)
		return err
	})
	if err == nil && old.task == 0 {
		err = sql.ErrNoRows
	}
	return old, err
}

// Statements with RETURNING would each need a statement journal.
const (
	taskColumns = `clock, micros, origin, state, final, name, worker, queue, client, exchange, routing_key, root, parent,
		sent, received, started, finished, updated, eta, expires, wait, run, retries, flags, lost, failure, last_receipt, first_receipt, block, call, dup`
	insertTask = `INSERT INTO tasks (` + taskColumns + `, id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`
	updateTask = `UPDATE tasks SET (` + taskColumns + `)
		= (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, coalesce(?, last_receipt), ?, ?, ?, ?) WHERE task = ?`
)

// nameColumn is the place of name in taskColumns.
const nameColumn = 5

// columns returns the values of taskColumns.
func (t *tx) columns(s *history.Task) ([]any, error) {
	v := &s.View
	columns := make([]any, 0, 33)
	columns = append(columns, v.Stamp.Clock, v.Stamp.Micros)
	for _, text := range []string{v.Stamp.Origin, string(v.State)} {
		n, err := t.symbol(text)
		if err != nil {
			return nil, err
		}
		columns = append(columns, n)
	}
	columns = append(columns, where.Class(v.State))
	for _, text := range []*string{v.Name, v.Worker, v.Queue, v.Client, v.Exchange, v.RoutingKey} {
		n, err := t.optional(text)
		if err != nil {
			return nil, err
		}
		columns = append(columns, n)
	}
	columns = append(columns, relative(v.RootID, v.ID), relative(v.ParentID, ""))
	for _, f := range []query.Field{
		query.Sent, query.Received, query.Started, query.Finished, query.Updated,
		query.ETA, query.Expires, query.Wait, query.Run, query.Retries,
	} {
		n, ok := f.Int(v)
		switch {
		case ok:
			columns = append(columns, n)
		case f == query.Updated:
			columns = append(columns, 0)
		default:
			columns = append(columns, nil)
		}
	}
	failure, err := t.failure(v)
	columns = append(columns, where.Flags(v), where.LostAt(v), failure)
	return append(columns, receipts(s)...), err
}

// receipts returns last_receipt, first_receipt and block of a task.
func receipts(s *history.Task) []any {
	switch {
	case s.ReceivedAt == 0:
		return []any{nil, nil, nil}
	case s.FirstReceipt == 0 || s.FirstReceipt == s.ReceivedAt:
		return []any{s.ReceivedAt, s.ReceivedAt, nil}
	default:
		return []any{s.ReceivedAt, s.FirstReceipt, blockOf(s.FirstReceipt, s.ReceivedAt)}
	}
}

// relative returns the key of another task, nil if there is none or it is self.
func relative(id *string, self string) any {
	if id == nil || *id == self {
		return nil
	}
	return idValue(*id)
}
