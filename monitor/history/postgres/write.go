package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
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
	}
	if err != nil {
		return history.WriteResult{}, fmt.Errorf("write history: %w", err)
	}
	return w, nil
}

func (t *tx) write(b history.Batch) (w history.WriteResult, err error) {
	if len(b.Journal) > 0 {
		entry, err := t.Insert(`entry`, `INSERT INTO journal (body) VALUES ($1)`, b.Journal)
		if err != nil {
			return w, err
		}
		w.JournalEntry = uint64(entry)
	}
	if len(b.Tasks) > 0 {
		if w.Existing, err = t.writeTasks(b.Tasks); err != nil {
			return w, err
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
		if err := tables.TakeSnapshot(t, b.At, b.Checkpoint); err != nil {
			return w, err
		}
	}
	if b.TrimJournal > 0 {
		err = t.Exec(`DELETE FROM journal WHERE entry <= $1`, int64(b.TrimJournal))
	}
	return w, err
}

// checkpoint saves a checkpoint as of the newest journal entry.
func (t *tx) checkpoint(c *history.Checkpoint) error {
	if err := t.set(tables.MetaClock, c.Clock); err != nil {
		return err
	}
	var newest int64
	const last = `SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('journal', 'entry')::regclass), 0)`
	if err := t.Get(last, nil, &newest); err != nil {
		return err
	}
	if err := t.set(tables.MetaCheckpoint, newest); err != nil {
		return err
	}
	var gone, names, bodies []string
	for name, body := range c.Workers {
		if body == nil {
			gone = append(gone, name)
		} else {
			names, bodies = append(names, name), append(bodies, string(body))
		}
	}
	if len(gone) > 0 {
		if err := t.Exec(`DELETE FROM workers WHERE name = ANY($1)`, gone); err != nil {
			return err
		}
	}
	if len(names) > 0 {
		err := t.Exec(`INSERT INTO workers (name, body) SELECT * FROM unnest($1::text[], $2::text[])
			ON CONFLICT (name) DO UPDATE SET body = excluded.body`, names, bodies)
		if err != nil {
			return err
		}
	}
	return t.addRollups(c.Rollups)
}

// set sets a value of the table meta.
func (t *tx) set(key string, value int64) error {
	return t.Exec(`INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
}

// record is a task that is to be written.
type record struct {
	*history.Task

	old     *stored // nil if there is none
	call    callRow
	failure *int64
	changed int64
	receipt
}

// receipt are times of receipt, as in the columns.
type receipt struct {
	last  int64
	first *int64
}

// writeTasks writes tasks, and returns the saved events of those that are there although Stored is false.
func (t *tx) writeTasks(tasks []history.Task) (existing map[string][]byte, err error) {
	ids := make([]string, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].View.ID
	}
	old, err := t.stored(ids)
	if err != nil {
		return nil, err
	}
	records := make([]record, 0, len(tasks))
	var known []string
	added := 0
	for i := range tasks {
		s := old[ids[i]]
		if s != nil && !tasks[i].Stored {
			known = append(known, ids[i])
			continue
		}
		records = append(records, record{Task: &tasks[i], old: s, receipt: receiptsOf(&tasks[i], s)})
		if s == nil {
			added++
		}
	}
	if err := t.number(records, added); err != nil {
		return nil, err
	}
	if err := t.findCalls(records); err != nil {
		return nil, err
	}
	if err := t.findFailures(records); err != nil {
		return nil, err
	}
	if err := t.save(records); err != nil || len(known) == 0 {
		return nil, err
	}
	existing = make(map[string][]byte, len(known))
	err = t.Each(`SELECT id, body FROM tasks WHERE id = ANY($1)`, []any{known}, func(rows *sql.Rows) error {
		var id string
		var body []byte
		err := rows.Scan(&id, &body)
		existing[id] = body
		return err
	})
	return existing, err
}

// number numbers new tasks in their order.
func (t *tx) number(records []record, added int) error {
	var numbers []int64
	if added > 0 {
		var err error
		if numbers, err = tables.List[int64](t.ctx, t.Tx, `SELECT nextval('task_numbers') FROM generate_series(1, $1)`, added); err != nil {
			return err
		}
	}
	slices.Sort(numbers)
	for i := range records {
		r := &records[i]
		if r.old != nil {
			r.call.task = r.old.task
			continue
		}
		r.call.task, numbers = numbers[0], numbers[1:]
	}
	return nil
}

// save replaces the rows of tasks. Each changes nearly all columns, so that an update would write a new row and its entries in
// all indexes too; rows of one statement are written much faster.
func (t *tx) save(records []record) error {
	if len(records) == 0 {
		return nil
	}
	if err := t.numberChanges(records); err != nil {
		return err
	}
	changes, workflows := make([]change, len(records)), workflowChanges{}
	replaced := make(map[int][]int64)
	for i := range records {
		r := &records[i]
		changes[i].new = &r.call
		r.call.week = t.db.weekOf(&r.View, r.last)
		if err := t.makeWeek(r.call.week); err != nil {
			return err
		}
		var before *workflowPart
		if r.old != nil {
			changes[i].old, before = &r.old.callRow, &r.old.workflowPart
			replaced[r.old.week] = append(replaced[r.old.week], r.old.task)
		}
		workflows.change(r.View.ID, before, partOf(&r.View))
	}
	marked, err := t.regroup(changes)
	if err != nil {
		return err
	}
	if err := t.mark(marked); err != nil {
		return err
	}
	if err := t.deleteRows(replaced); err != nil {
		return err
	}
	if err := t.copyRows(records); err != nil {
		return fmt.Errorf("copy tasks: %w", err)
	}
	return t.saveWorkflows(workflows)
}

// deleteRows deletes rows by number, given by week.
func (t *tx) deleteRows(byWeek map[int][]int64) error {
	for week, tasks := range byWeek {
		if err := t.Exec(`DELETE FROM tasks WHERE week = $1 AND task = ANY($2)`, week, tasks); err != nil {
			return err
		}
		if week == 0 {
			t.Committed(func() { t.db.freed(len(tasks)) })
		}
	}
	return nil
}

// copyRows adds rows.
func (t *tx) copyRows(records []record) error {
	return t.raw(func(ctx context.Context, c *pgx.Conn) error {
		rows := pgx.CopyFromSlice(len(records), func(i int) ([]any, error) { return records[i].values(), nil })
		_, err := c.CopyFrom(ctx, pgx.Identifier{"tasks"}, taskColumns(), rows)
		return err
	})
}

// stored is what is to be known of a stored task that is replaced or removed.
type stored struct {
	callRow
	workflowPart
	receipt

	id string
}

const storedColumns = callColumns + `, id, root, final, flags, coalesce(sent, received, started, 0), coalesce(finished, 0), last_receipt, first_receipt`

func scanStored(rows *sql.Rows) (s *stored, err error) {
	s = new(stored)
	var final, flags int64
	var over bool
	if s.callRow, over, err = scanCall(rows, &s.id, &s.root, &final, &flags, &s.workflowPart.first, &s.workflowPart.last, &s.receipt.last, &s.receipt.first); err != nil {
		return nil, err
	}
	s.workflowPart.set(final, flags, over, s.callRow.name)
	return s, nil
}

// stored reads those tasks that are there.
func (t *tx) stored(ids []string) (map[string]*stored, error) {
	found := make(map[string]*stored, len(ids))
	err := t.Each(`SELECT `+storedColumns+` FROM tasks WHERE id = ANY($1)`, []any{ids}, func(rows *sql.Rows) error {
		s, err := scanStored(rows)
		if err == nil {
			found[s.id] = s
		}
		return err
	})
	return found, err
}

// receiptsOf returns the times of receipt of a task, or what is next to them.
func receiptsOf(s *history.Task, old *stored) (r receipt) {
	switch {
	case s.ReceivedAt != 0:
		r.last, r.first = s.ReceivedAt, &s.ReceivedAt
		if s.FirstReceipt != 0 {
			r.first = &s.FirstReceipt
		}
	case old != nil:
		r = old.receipt
	default:
		r.last = estimatedReceipt(&s.View)
	}
	return r
}
