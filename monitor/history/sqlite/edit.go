package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

// metaEdit is the key of the table meta for how far an Edit came.
const metaEdit = "edit"

// editBatch is how many rows are edited in one transaction.
const editBatch = 200

// Edit takes texts out of what is stored. All functions are required.
type Edit struct {
	ID      string                                       // equal for edits that do the same, so that one goes on where another was interrupted
	Event   func(e *state.Event, name string)            // as state.EditTask; name is that of the task, empty if unknown
	Command func(kind string, payload []byte) []byte     // payload of a command that is final, or of a Message
	Message func(kind string) bool                       // whether commands of a kind do the same with an edited payload, as texts for people do
	Audit   func(target, detail string) (string, string) // target and detail of an audit record
	Record  func(record []byte) ([]byte, error)          // record of the log of alerts
	Query   func(q string) string                        // query of a view or an alert rule
	Text    func(s string) string                        // summaries, replies, errors, and what people wrote
}

// Edited is how many rows of what an Edit changes.
type Edited struct {
	Tasks, Journal, Workers, Snapshots, Commands, Failures, Audit int
	Views, Marks                                                  int
	Alerts                                                        int // rules, firings and records of the log

	Examined int // rows so far
	Rows     int // about as many are there

	Waiting    int     // commands that may still be sent: what would change in them stays
	WaitingIDs []int64 // the first of them

	Unreadable int // rows that stay as they are
}

// maxWaitingIDs bounds Edited.WaitingIDs.
const maxWaitingIDs = 20

// Changed is how many rows change.
func (e *Edited) Changed() int {
	return e.Tasks + e.Journal + e.Workers + e.Snapshots + e.Commands + e.Failures + e.Audit + e.Views + e.Marks + e.Alerts
}

// editor is a run of Edit.
type editor struct {
	Edit

	db       *DB
	done     Edited
	progress func(Edited)
	reader   state.Reader
	at       editPosition
	resumed  bool
}

// editPosition is how far an edit came.
type editPosition struct {
	ID      string `json:"id"`
	Written int64  `json:"written"` // tables.MetaBatchAt: a history that was written since is edited from its beginning
	Table   int    `json:"table"`
	Last    any    `json:"last"` // key of the last row, nil at the beginning
}

// editTable is a table that is edited row by row.
type editTable struct {
	rows  string // SELECT key, … FROM …, without WHERE
	where string
	key   string
	// edit scans a row and returns its key and how to write it, nil if it stays.
	edit func(x *editor, rows *sql.Rows) (key any, write func(t *tx) error, err error)
}

func editTables() []editTable {
	return []editTable{
		{`SELECT tasks.task, id, body FROM tasks JOIN events USING (task)`, `true`, `tasks.task`, (*editor).task},
		{`SELECT entry, body FROM journal`, `true`, `entry`, (*editor).journal},
		{`SELECT name, body FROM workers`, `true`, `name`, (*editor).worker},
		{`SELECT at, body FROM snapshots`, `body IS NOT NULL`, `at`, (*editor).snapshot},
		{`SELECT command, kind, payload, target, summary, error, answers, state FROM outbox`, `true`, `command`, (*editor).command},
		{`SELECT failure, type, message, place, note FROM failures`, `true`, `failure`, (*editor).failure},
		{`SELECT view, name, query FROM views`, `true`, `view`, (*editor).view},
		{`SELECT mark, text, link, service, version FROM marks`, `true`, `mark`, (*editor).mark},
		{`SELECT rule, name, definition FROM alert_rules`, `true`, `rule`, (*editor).alertRule},
		{`SELECT firing, name, evidence FROM alert_firings`, `true`, `firing`, (*editor).alertFiring},
		{`SELECT at, record FROM alert_records`, `true`, `at`, (*editor).alertRecord},
	}
}

// PlanEdit counts what Edit would change.
func (d *DB) PlanEdit(ctx context.Context, e Edit, progress func(Edited)) (done Edited, err error) {
	defer annotate(&err, "read history")
	x := &editor{Edit: e, db: d, progress: progress}
	if err := x.count(ctx); err != nil {
		return x.done, err
	}
	for i := range editTables() {
		x.at = editPosition{Table: i}
		if err := x.table(ctx, true); err != nil {
			return x.done, err
		}
	}
	err = tables.EachAuditRecord(ctx, d.read, func(a history.AuditRecord) error {
		x.done.Examined++
		if x.record(&a) {
			x.done.Audit++
		}
		return nil
	}, ``)
	return x.done, err
}

// Edit takes texts out of all that is stored, in transactions of 200 rows, of the text index and of the free space of the
// file. It goes on where an Edit with the same ID was interrupted. by is appended to the audit log if something changed, with the hash that the
// last record had before if records before it changed. Nothing else may use the DB. The last step copies the file, which takes as much space for temporary files.
func (d *DB) Edit(ctx context.Context, e Edit, by history.AuditRecord, progress func(Edited)) (done Edited, err error) {
	defer annotate(&err, "edit history")
	x := &editor{Edit: e, db: d, progress: progress}
	if err := x.count(ctx); err != nil {
		return x.done, err
	}
	if err := x.load(ctx); err != nil {
		return x.done, err
	}
	for ; x.at.Table < len(editTables()); x.at.Table, x.at.Last = x.at.Table+1, nil {
		if err := x.table(ctx, false); err != nil {
			return x.done, err
		}
	}
	if err := x.auditLog(ctx, by); err != nil {
		return x.done, err
	}
	if err := d.sweepFailures(ctx); err != nil {
		return x.done, err
	}
	err = d.update(ctx, func(t *tx) error {
		if err := t.forgetTexts(); err != nil {
			return err
		}
		return t.exec(`DELETE FROM meta WHERE key = ?`, metaEdit)
	})
	if err == nil {
		err = d.vacuum(ctx)
	}
	return x.done, err
}

// count counts the rows to examine.
func (x *editor) count(ctx context.Context) (err error) {
	for _, table := range []string{
		"tasks", "journal", "workers", "snapshots", "outbox", "failures", "views", "marks", "alert_rules", "alert_firings", "alert_records", "audit",
	} {
		n, err := tables.Number[int](ctx, x.db.read, `SELECT count(*) FROM `+table)
		if err != nil {
			return err
		}
		x.done.Rows += n
	}
	return nil
}

// load finds where to go on.
func (x *editor) load(ctx context.Context) error {
	written, err := tables.Number[int64](ctx, x.db.read, `SELECT coalesce((SELECT value FROM meta WHERE key = ?), 0)`, tables.MetaBatchAt)
	if err != nil {
		return err
	}
	found, err := tables.List[string](ctx, x.db.read, `SELECT value FROM meta WHERE key = ?`, metaEdit)
	if err != nil {
		return err
	}
	start := editPosition{ID: x.ID, Written: written}
	if len(found) == 0 || json.Unmarshal([]byte(found[0]), &x.at) != nil || x.at.ID != start.ID || x.at.Written != written {
		x.at = start
	}
	x.resumed = x.at.Last != nil
	if n, ok := x.at.Last.(float64); ok {
		x.at.Last = int64(n)
	}
	return nil
}

// table edits the rest of a table.
func (x *editor) table(ctx context.Context, dry bool) error {
	table := editTables()[x.at.Table]
	for {
		query := table.rows + ` WHERE ` + table.where
		var args []any
		if x.at.Last != nil {
			query, args = query+` AND `+table.key+` > ?`, append(args, x.at.Last)
		}
		var writes []func(t *tx) error
		n := 0
		err := tables.EachRow(ctx, x.db.read, query+` ORDER BY `+table.key+` LIMIT ?`, append(args, editBatch), func(rows *sql.Rows) error {
			n++
			key, write, err := table.edit(x, rows)
			if bad, ok := errors.AsType[unreadable](err); ok {
				x.done.Unreadable++
				x.db.log.Warn("a row is unreadable and stays as it is", "table", table.key, "key", key, "error", bad.error)
				err = nil
			}
			if x.at.Last = key; write != nil {
				writes = append(writes, write)
			}
			return err
		})
		if err != nil {
			return err
		}
		x.done.Examined += n
		if !dry && n > 0 {
			if err := x.write(ctx, writes); err != nil {
				return err
			}
		}
		if x.progress(x.done); n < editBatch {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// write writes what was edited, and how far that is.
func (x *editor) write(ctx context.Context, writes []func(t *tx) error) error {
	at, err := json.Marshal(x.at)
	if err != nil {
		return err
	}
	return x.db.update(ctx, func(t *tx) error {
		for _, write := range writes {
			if err := write(t); err != nil {
				return err
			}
		}
		return t.exec(`INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value`, metaEdit, string(at))
	})
}

// vacuum writes the file anew, so that no free space has what was deleted, and empties its log.
func (d *DB) vacuum(ctx context.Context) error {
	select {
	case d.writer <- struct{}{}:
		defer func() { <-d.writer }()
	case <-ctx.Done():
		return ctx.Err()
	}
	conn, err := d.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // returns it to its pool
	for _, statement := range []string{
		`PRAGMA temp_store = FILE`, `VACUUM`, `PRAGMA temp_store = MEMORY`, `PRAGMA wal_checkpoint(TRUNCATE)`,
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, explain(err))
		}
	}
	return nil
}
