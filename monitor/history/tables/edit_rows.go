package tables

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// unreadable is the error of a row that cannot be read and stays as it is.
type unreadable struct{ error }

func (x *editor) task(rows *sql.Rows) (any, func(t Tx) error, error) {
	var task int64
	var key any
	var body []byte
	if err := rows.Scan(&task, &key, &body); err != nil {
		return nil, nil, err
	}
	id := x.steps.ID(key)
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
	x.tasks = append(x.tasks, EditedTask{key, after, edited})
	return task, nil, nil
}

func (x *editor) journal(rows *sql.Rows) (any, func(t Tx) error, error) {
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
	return entry, func(t Tx) error { return t.Exec(`UPDATE journal SET body = ? WHERE entry = ?`, edited, entry) }, nil
}

func (x *editor) worker(rows *sql.Rows) (any, func(t Tx) error, error) {
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
	return name, func(t Tx) error {
		return t.Exec(`UPDATE workers SET body = ? WHERE name = ?`, string(edited), name)
	}, nil
}

func (x *editor) snapshot(rows *sql.Rows) (any, func(t Tx) error, error) {
	var at int64
	var body []byte
	if err := rows.Scan(&at, &body); err != nil {
		return nil, nil, err
	}
	s, err := DecodeSnapshot(body)
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
	if body, err = EncodeSnapshot(s); err != nil {
		return at, nil, err
	}
	x.done.Snapshots++
	return at, func(t Tx) error { return t.Exec(`UPDATE snapshots SET body = ? WHERE at = ?`, body, at) }, nil
}

func (x *editor) command(rows *sql.Rows) (any, func(t Tx) error, error) {
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
	replies, err := EditReplies(answers, x.Text)
	if err != nil {
		return id, nil, unreadable{err}
	}
	newTarget, newSummary, newFailed := x.Text(target), x.Text(summary), x.Text(failed)
	if string(edited) == string(payload) && newTarget == target && newSummary == summary && newFailed == failed && replies == answers {
		return id, nil, nil
	}
	x.done.Commands++
	return id, func(t Tx) error {
		err := t.Exec(`UPDATE outbox SET payload = ?, target = ?, summary = ?, error = ?, answers = ? WHERE command = ?`, edited, newTarget, newSummary, newFailed, replies, id)
		if err == nil && newFailed != failed {
			err = t.Exec(`UPDATE dead_letters SET reason = ? WHERE command = ? AND reason = ?`, newFailed, id, failed)
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
func (x *editor) failure(rows *sql.Rows) (any, func(t Tx) error, error) {
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
	return id, func(t Tx) error {
		if err := t.Exec(`DELETE FROM failures WHERE failure = ?1 AND NOT EXISTS (SELECT 1 FROM tasks WHERE failure = ?1)`, id); err != nil {
			return err
		}
		return t.Exec(`UPDATE failures SET type = ?, message = ?, place = ?, note = ? WHERE failure = ?`, edited[0], edited[1], edited[2], edited[3], id)
	}, nil
}

// auditLog edits the audit log in one transaction, computes the hashes anew from the first record that changes on, and
// appends one that says so.
func (x *editor) auditLog(ctx context.Context, by history.AuditRecord) error {
	return x.engine.UpdateTasks(ctx, func(t Tx) error {
		locked, err := x.steps.Audit(t)
		if err != nil {
			return err
		}
		former, err := x.records(t)
		if err != nil {
			return err
		}
		if err := locked(); err != nil {
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
		return WriteAudit(t, by)
	})
}

// records edits all audit records, and returns the hash that the last one had if any has changed.
func (x *editor) records(t Tx) (former string, err error) {
	var hash, newest string
	for last, n := int64(0), editBatch; n == editBatch; {
		var page []history.AuditRecord
		err := EachAuditRecord(t.Context(), t, func(a history.AuditRecord) error { page = append(page, a); return nil },
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
				a.Hash = AuditHash(hash, &a)
				if err := t.Exec(`UPDATE audit SET target = ?, detail = ?, hash = ? WHERE record = ?`, a.Target, a.Detail, a.Hash, a.ID); err != nil {
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
