package tables

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// editBatch is how many rows are edited in one transaction.
const editBatch = 200

// EditSteps are the parts of an edit that each engine does in a way of its own.
type EditSteps struct {
	Rows  string                                     // SELECT of the numbers, keys and events of tasks, without WHERE
	ID    func(key any) string                       // of a task, from its key
	Tasks func(t Tx, list []EditedTask) error        // writes tasks whose texts have changed
	Audit func(t Tx) (close func() error, err error) // lets the audit log be changed until close

	Load   func(ctx context.Context) (position string, err error) // empty if none was saved
	Save   func(t Tx, position string) error
	Finish func(ctx context.Context) error
}

// EditedTask is a task whose texts have changed.
type EditedTask struct {
	Key    any
	View   state.Task
	Events []byte
}

// maxWaitingIDs bounds Edited.WaitingIDs.
const maxWaitingIDs = 20

// editor is a run of Edit.
type editor struct {
	history.Edit

	engine   Engine
	steps    EditSteps
	done     history.Edited
	progress func(history.Edited)
	reader   state.Reader
	tasks    []EditedTask // of the rows that are written next
	at       editPosition
	resumed  bool
}

// editPosition is how far an edit came.
type editPosition struct {
	ID      string `json:"id"`
	Written int64  `json:"written"` // MetaBatchAt: a history that was written since is edited from its beginning
	Table   int    `json:"table"`
	Last    any    `json:"last"` // key of the last row, nil at the beginning
}

// editTable is a table that is edited row by row.
type editTable struct {
	rows  string // SELECT key, … FROM …, without WHERE
	where string
	key   string
	// edit scans a row and returns its key and how to write it, nil if it stays.
	edit func(x *editor, rows *sql.Rows) (key any, write func(t Tx) error, err error)
}

func (x *editor) tables() []editTable {
	return []editTable{
		{x.steps.Rows, `true`, `tasks.task`, (*editor).task},
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

// PlanEdit implements history.Editor.
func PlanEdit(ctx context.Context, on Engine, steps EditSteps, e history.Edit, progress func(history.Edited)) (done history.Edited, err error) {
	defer on.Annotate(&err, "read history")
	x := &editor{Edit: e, engine: on, steps: steps, progress: progress}
	if err := x.count(ctx); err != nil {
		return x.done, err
	}
	for i := range x.tables() {
		x.at = editPosition{Table: i}
		if err := x.table(ctx, true); err != nil {
			return x.done, err
		}
	}
	err = EachAuditRecord(ctx, on.Reader(), func(a history.AuditRecord) error {
		x.done.Examined++
		if x.record(&a) {
			x.done.Audit++
		}
		return nil
	}, ``)
	return x.done, err
}

// RunEdit implements history.Editor.
func RunEdit(
	ctx context.Context, on Engine, steps EditSteps, e history.Edit, by history.AuditRecord, progress func(history.Edited),
) (done history.Edited, err error) {
	defer on.Annotate(&err, "edit history")
	x := &editor{Edit: e, engine: on, steps: steps, progress: progress}
	if err := x.count(ctx); err != nil {
		return x.done, err
	}
	if err := x.load(ctx); err != nil {
		return x.done, err
	}
	for ; x.at.Table < len(x.tables()); x.at.Table, x.at.Last = x.at.Table+1, nil {
		if err := x.table(ctx, false); err != nil {
			return x.done, err
		}
	}
	if err := x.auditLog(ctx, by); err != nil {
		return x.done, err
	}
	return x.done, steps.Finish(ctx)
}

// count counts the rows to examine.
func (x *editor) count(ctx context.Context) (err error) {
	for _, table := range []string{
		"tasks", "journal", "workers", "snapshots", "outbox", "failures", "views", "marks", "alert_rules", "alert_firings", "alert_records", "audit",
	} {
		n, err := Number[int](ctx, x.engine.Reader(), `SELECT count(*) FROM `+table)
		if err != nil {
			return err
		}
		x.done.Rows += n
	}
	return nil
}

// load finds where to go on.
func (x *editor) load(ctx context.Context) error {
	written, err := Number[int64](ctx, x.engine.Reader(), `SELECT coalesce((SELECT value FROM meta WHERE key = ?), 0)`, MetaBatchAt)
	if err != nil {
		return err
	}
	found, err := x.steps.Load(ctx)
	if err != nil {
		return err
	}
	start := editPosition{ID: x.ID, Written: written}
	if json.Unmarshal([]byte(found), &x.at) != nil || x.at.ID != start.ID || x.at.Written != written {
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
	table := x.tables()[x.at.Table]
	for {
		query := table.rows + ` WHERE ` + table.where
		var args []any
		if x.at.Last != nil {
			query, args = query+` AND `+table.key+` > ?`, append(args, x.at.Last)
		}
		var writes []func(t Tx) error
		n := 0
		err := EachRow(ctx, x.engine.Reader(), query+` ORDER BY `+table.key+` LIMIT ?`, append(args, editBatch), func(rows *sql.Rows) error {
			n++
			key, write, err := table.edit(x, rows)
			if bad, ok := errors.AsType[unreadable](err); ok {
				x.done.Unreadable++
				x.engine.Log().Warn("a row is unreadable and stays as it is", "table", table.key, "key", key, "error", bad.error)
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
		if dry {
			x.tasks = x.tasks[:0]
		} else if n > 0 {
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
func (x *editor) write(ctx context.Context, writes []func(t Tx) error) error {
	at, err := json.Marshal(x.at)
	if err != nil {
		return err
	}
	edited := x.tasks
	x.tasks = nil
	return x.engine.UpdateTasks(ctx, func(t Tx) error {
		if len(edited) > 0 {
			if err := x.steps.Tasks(t, edited); err != nil {
				return err
			}
		}
		for _, write := range writes {
			if err := write(t); err != nil {
				return err
			}
		}
		return x.steps.Save(t, string(at))
	})
}
