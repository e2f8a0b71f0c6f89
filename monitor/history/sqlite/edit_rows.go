package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

// unreadable is the error of a row that cannot be read and stays as it is.
type unreadable struct{ error }

func (x *editor) task(rows *sql.Rows) (any, func(t *tx) error, error) {
	var task int64
	var key any
	var body []byte
	if err := rows.Scan(&task, &key, &body); err != nil {
		return nil, nil, err
	}
	id := idText(key)
	before, err := x.reader.Task(id, body)
	if err != nil {
		return task, nil, unreadable{err}
	}
	name := ""
	if before.Name != nil {
		name = *before.Name
	}
	edited, changed, err := state.EditTask(id, body, func(e *state.Event) { x.Event(e, name) })
	if err != nil {
		return task, nil, unreadable{err}
	}
	if !changed {
		return task, nil, nil
	}
	after, err := x.reader.Task(id, edited)
	if err != nil {
		return task, nil, err
	}
	x.done.Tasks++
	return task, func(t *tx) error { return t.edit(key, &after, edited) }, nil
}

// edit writes a task whose texts have changed.
func (t *tx) edit(id any, v *state.Task, events []byte) error {
	old, err := t.stored(id)
	if err != nil {
		return err
	}
	call, err := t.callOf(v, nil)
	if err != nil {
		return err
	}
	p, err := t.prepare(call, &old.callRow)
	if err != nil {
		return err
	}
	failure, err := t.failure(v)
	if err != nil {
		return err
	}
	if err := t.exec(`UPDATE tasks SET failure = ?, call = ?, dup = ? WHERE task = ?`, failure, p.call, p.dup, old.task); err != nil {
		return err
	}
	if err := t.regroup(&p, &old.callRow); err != nil {
		return err
	}
	return t.exec(`UPDATE events SET body = ? WHERE task = ?`, events, old.task)
}

func (x *editor) journal(rows *sql.Rows) (any, func(t *tx) error, error) {
	var entry int64
	var body []byte
	if err := rows.Scan(&entry, &body); err != nil {
		return nil, nil, err
	}
	edited, changed, err := state.EditJournal(body, func(e *state.Event) { x.Event(e, "") })
	if err != nil {
		return entry, nil, unreadable{err}
	}
	if !changed {
		return entry, nil, nil
	}
	x.done.Journal++
	return entry, func(t *tx) error { return t.exec(`UPDATE journal SET body = ? WHERE entry = ?`, edited, entry) }, nil
}

func (x *editor) worker(rows *sql.Rows) (any, func(t *tx) error, error) {
	var name, body string
	if err := rows.Scan(&name, &body); err != nil {
		return nil, nil, err
	}
	edited, changed, err := state.EditWorker([]byte(body), func(e *state.Event) { x.Event(e, "") })
	if err != nil {
		return name, nil, unreadable{err}
	}
	if !changed {
		return name, nil, nil
	}
	x.done.Workers++
	return name, func(t *tx) error {
		return t.exec(`UPDATE workers SET body = ? WHERE name = ?`, string(edited), name)
	}, nil
}

func (x *editor) snapshot(rows *sql.Rows) (any, func(t *tx) error, error) {
	var at int64
	var body []byte
	if err := rows.Scan(&at, &body); err != nil {
		return nil, nil, err
	}
	s, err := tables.DecodeSnapshot(body)
	if err != nil {
		return at, nil, unreadable{err}
	}
	any := false
	for i, worker := range s.Workers {
		edited, changed, err := state.EditWorker([]byte(worker), func(e *state.Event) { x.Event(e, "") })
		if err != nil {
			return at, nil, unreadable{err}
		}
		if changed {
			s.Workers[i], any = string(edited), true
		}
	}
	if !any {
		return at, nil, nil
	}
	if body, err = tables.EncodeSnapshot(s); err != nil {
		return at, nil, err
	}
	x.done.Snapshots++
	return at, func(t *tx) error { return t.exec(`UPDATE snapshots SET body = ? WHERE at = ?`, body, at) }, nil
}

func (x *editor) command(rows *sql.Rows) (any, func(t *tx) error, error) {
	var id int64
	var kind, target, summary, failed, answers, status string
	var payload []byte
	if err := rows.Scan(&id, &kind, &payload, &target, &summary, &failed, &answers, &status); err != nil {
		return nil, nil, err
	}
	edited := x.Command(kind, payload)
	if s := history.CommandState(status); !x.Message(kind) && (s == history.CommandPending || s == history.CommandInFlight || s == history.CommandDead) {
		if string(edited) != string(payload) {
			x.waits(id)
		}
		edited = payload
	}
	replies, err := tables.EditReplies(answers, x.Text)
	if err != nil {
		return id, nil, unreadable{err}
	}
	newTarget, newSummary, newFailed := x.Text(target), x.Text(summary), x.Text(failed)
	if string(edited) == string(payload) && newTarget == target && newSummary == summary && newFailed == failed && replies == answers {
		return id, nil, nil
	}
	x.done.Commands++
	return id, func(t *tx) error {
		err := t.exec(`UPDATE outbox SET payload = ?, target = ?, summary = ?, error = ?, answers = ? WHERE command = ?`, edited, newTarget, newSummary, newFailed, replies, id)
		if err == nil && newFailed != failed {
			err = t.exec(`UPDATE dead_letters SET reason = ? WHERE command = ? AND reason = ?`, newFailed, id, failed)
		}
		return err
	}, nil
}

// waits notes a command that keeps what an edit would take.
func (x *editor) waits(id int64) {
	x.done.Waiting++
	if len(x.done.WaitingIDs) < maxWaitingIDs {
		x.done.WaitingIDs = append(x.done.WaitingIDs, id)
	}
}

// failure edits a group of failures that still has tasks, and removes it else: its tasks are in others now.
func (x *editor) failure(rows *sql.Rows) (any, func(t *tx) error, error) {
	var id int64
	var texts, edited [4]string
	if err := rows.Scan(&id, &texts[0], &texts[1], &texts[2], &texts[3]); err != nil {
		return nil, nil, err
	}
	for i, s := range texts {
		edited[i] = x.Text(s)
	}
	if edited == texts {
		return id, nil, nil
	}
	x.done.Failures++
	return id, func(t *tx) error {
		if err := t.exec(`DELETE FROM failures WHERE failure = ?1 AND NOT EXISTS (SELECT 1 FROM tasks WHERE failure = ?1)`, id); err != nil {
			return err
		}
		return t.exec(`UPDATE failures SET type = ?, message = ?, place = ?, note = ? WHERE failure = ?`, edited[0], edited[1], edited[2], edited[3], id)
	}, nil
}

// auditLog edits the audit log in one transaction, computes the hashes anew from the first record that changes on, and
// appends one that says so.
func (x *editor) auditLog(ctx context.Context, by history.AuditRecord) error {
	return x.db.update(ctx, func(t *tx) error {
		const trigger = `audit_unchanged`
		var create string
		if err := t.get(`SELECT sql FROM sqlite_schema WHERE name = ?`, []any{trigger}, &create); err != nil {
			return err
		}
		if _, err := t.ExecContext(t.ctx, `DROP TRIGGER `+trigger); err != nil {
			return err
		}
		former, err := x.records(t)
		if err != nil {
			return err
		}
		if _, err := t.ExecContext(t.ctx, create); err != nil {
			return err
		}
		x.progress(x.done)
		if x.done.Changed() == 0 && !x.resumed {
			return nil
		}
		detail, err := json.Marshal(struct {
			Rows   int    `json:"rows"`
			Audit  int    `json:"audit_records"`
			Former string `json:"former_hash,omitempty"`
		}{x.done.Changed(), x.done.Audit, former})
		if err != nil {
			return err
		}
		by.Detail = string(detail)
		return tables.WriteAudit(tableTx{t}, by)
	})
}

// records edits all audit records, and returns the hash that the last one had if any has changed.
func (x *editor) records(t *tx) (former string, err error) {
	var hash, newest string
	for last, n := int64(0), editBatch; n == editBatch; {
		var page []history.AuditRecord
		err := tables.EachAuditRecord(t.ctx, t, func(a history.AuditRecord) error { page = append(page, a); return nil },
			`WHERE record > ? ORDER BY record LIMIT ?`, last, editBatch)
		if err != nil {
			return "", err
		}
		n = len(page)
		for _, a := range page {
			last, newest = a.ID, a.Hash
			x.done.Examined++
			if x.record(&a) {
				x.done.Audit++
			}
			if x.done.Audit > 0 {
				a.Hash = tables.AuditHash(hash, &a)
				if err := t.exec(`UPDATE audit SET target = ?, detail = ?, hash = ? WHERE record = ?`, a.Target, a.Detail, a.Hash, a.ID); err != nil {
					return "", err
				}
			}
			hash = a.Hash
		}
	}
	if x.done.Audit == 0 {
		return "", nil
	}
	return newest, nil
}

// record edits an audit record and reports whether it differs.
func (x *editor) record(a *history.AuditRecord) bool {
	target, detail := x.Audit(a.Target, a.Detail)
	same := target == a.Target && detail == a.Detail
	a.Target, a.Detail = target, detail
	return !same
}
