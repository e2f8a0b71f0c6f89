package database

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/internal/sqldb"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

const (
	rowColumns  = `id, task_id, task_name, created_at, updated_at, retry_after, retries, schema_version`
	deadColumns = `id, task_id, task_name, created_at, dead_at, retries, schema_version, substr(coalesce(failure_reason, ''), 1, 1024)`
)

// invalidCursor is the error of a page that starts nowhere.
func invalidCursor() error {
	return &outboxwatch.Error{Fault: outboxwatch.FaultOther, Text: "Such a page does not exist: start from the first one.", Err: outboxwatch.ErrCursor}
}

// Rows returns a page of the outbox.
func (b *Outbox) Rows(ctx context.Context, r outboxwatch.RowRequest) (page outboxwatch.RowPage, err error) {
	err = b.reading(ctx, func(t *reader) error {
		w := window{table: t.table, order: "id", condition: "id > 0", name: r.Name, limit: r.Limit}
		for _, i := range t.states() {
			if i.state == r.State {
				w.order, w.condition, w.args = i.order, i.condition, i.args
				w.filter = supported
			}
		}
		if r.State == outboxwatch.OtherSchema {
			w.filter = "NOT " + supported
		}
		columns := rowColumns + ", " + t.key(w.order) + t.payload(r.Payload)
		var keys []string
		more, searched, err := t.page(&w, r.After, columns, func(rows *sql.Rows) error {
			row, key, err := t.scanRow(rows, r.Payload)
			page.Rows, keys = append(page.Rows, row), append(keys, key)
			return err
		})
		page.Next, page.Searched = more, searched
		if len(page.Rows) > r.Limit {
			page.Rows = page.Rows[:r.Limit]
			page.Next = cursor(keys[r.Limit-1], page.Rows[r.Limit-1].ID)
		}
		return err
	})
	return page, err
}

// DeadLetters returns a page of the dead letters, newest first.
func (b *Outbox) DeadLetters(ctx context.Context, r outboxwatch.DeadLetterRequest) (page outboxwatch.DeadLetterPage, err error) {
	err = b.reading(ctx, func(t *reader) error {
		w := window{table: t.dead, order: "id", condition: "id > 0", name: r.Name, limit: r.Limit, newest: true}
		if r.IDs != nil {
			w.condition, w.args = "id IN ("+list(len(r.IDs))+")", anys(r.IDs)
		}
		var err error
		page.Next, page.Searched, err = t.page(&w, r.After, deadColumns+t.payload(r.Payload), func(rows *sql.Rows) error {
			d, err := t.scanDead(rows, r.Payload)
			page.DeadLetters = append(page.DeadLetters, d)
			return err
		})
		if len(page.DeadLetters) > r.Limit {
			page.DeadLetters = page.DeadLetters[:r.Limit]
			page.Next = cursor("", page.DeadLetters[r.Limit-1].ID)
		}
		return err
	})
	return page, err
}

// ByTask returns the rows and dead letters of tasks, oldest first.
func (b *Outbox) ByTask(ctx context.Context, taskIDs []string) (found []outboxwatch.Row, dead []outboxwatch.DeadLetter, err error) {
	if len(taskIDs) == 0 {
		return nil, nil, nil
	}
	taskIDs = taskIDs[:min(len(taskIDs), outboxwatch.MaxByTask)]
	query := `SELECT %s FROM %s WHERE task_id IN (` + list(len(taskIDs)) + `) LIMIT ` + strconv.Itoa(outboxwatch.MaxByTask)
	err = b.reading(ctx, func(t *reader) error {
		err := t.rows(fmt.Sprintf(query, rowColumns+", ''", sqldb.Quote(t.table)), anys(taskIDs), func(rows *sql.Rows) error {
			r, _, err := t.scanRow(rows, false)
			found = append(found, r)
			return err
		})
		if err != nil {
			return err
		}
		return t.rows(fmt.Sprintf(query, deadColumns, sqldb.Quote(t.dead)), anys(taskIDs), func(rows *sql.Rows) error {
			d, err := t.scanDead(rows, false)
			dead = append(dead, d)
			return err
		})
	})
	slices.SortFunc(found, func(a, b outboxwatch.Row) int { return int(a.ID - b.ID) })
	slices.SortFunc(dead, func(a, b outboxwatch.DeadLetter) int { return int(a.ID - b.ID) })
	return found, dead, err
}

// list returns n placeholders.
func list(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

func anys[T any](values []T) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// window is a part of an index that a page is looked for in. A page of a name looks through Window entries at most.
type window struct {
	table, order, condition string
	args                    []any
	filter                  string // what the index does not tell, empty for nothing
	name                    string
	limit                   int
	newest                  bool // the index backwards
}

// page calls scan for up to limit+1 rows. If there are no more, but the window did not reach the end, it returns where the
// next window starts, and how many entries were looked through.
func (t *reader) page(w *window, after, columns string, scan func(rows *sql.Rows) error) (next string, searched int, err error) {
	inner, args, err := t.entries(w, after)
	if err != nil {
		return "", 0, err
	}
	order, filter := w.orderBy(), w.filters(&args)
	entries := w.limit + 1
	if filter != "" {
		entries = outboxwatch.Window
		filter = " WHERE " + filter
	}
	n := 0
	query := fmt.Sprintf(`SELECT %s FROM (%s LIMIT %d) w%s ORDER BY %s LIMIT %d`, columns, fmt.Sprintf(inner, "*"), entries, filter, order, w.limit+1)
	err = t.rows(query, args, func(rows *sql.Rows) error { n++; return scan(rows) })
	if err != nil || n > w.limit || filter == "" {
		return "", 0, err
	}
	var key string
	var id int64
	last := fmt.Sprintf(inner, t.key(w.order)+", id") + fmt.Sprintf(` LIMIT 1 OFFSET %d`, entries-1)
	innerArgs := args[:strings.Count(inner, "?")]
	switch err := t.row(last, innerArgs, &key, &id); {
	case errors.Is(err, sql.ErrNoRows):
		return "", 0, nil
	case err != nil:
		return "", 0, err
	}
	return cursor(key, id), entries, nil
}

// entries returns the query of the entries of the index from the cursor on, with %s for the columns.
func (t *reader) entries(w *window, after string) (query string, args []any, err error) {
	condition, args := w.condition, slices.Clone(w.args)
	if after != "" {
		key, id, err := parseCursor(after)
		if err != nil {
			return "", nil, err
		}
		direction := ">"
		if w.newest {
			direction = "<"
		}
		switch {
		case w.order == "id":
			condition += " AND id " + direction + " ?"
			args = append(args, id)
		case t.dialect == sqldb.SQLite:
			condition += " AND (" + w.order + ", id) " + direction + " (?, ?)"
			args = append(args, key, id)
		default:
			condition += " AND (" + w.order + ", id) " + direction + " (?::timestamptz, ?)"
			args = append(args, key, id)
		}
	}
	return "SELECT %s FROM " + sqldb.Quote(w.table) + " WHERE " + condition + " ORDER BY " + w.orderBy(), args, nil
}

func (w *window) orderBy() string {
	if w.newest {
		return orderBy(w.order, " DESC")
	}
	return orderBy(w.order, "")
}

// filters returns the conditions that no index tells, and adds their parameters.
func (w *window) filters(args *[]any) string {
	filter := w.filter
	if w.name != "" {
		condition := "task_name = ?"
		name, prefix := strings.CutSuffix(w.name, "*")
		if prefix {
			condition = fmt.Sprintf("substr(task_name, 1, %d) = ?", len([]rune(name)))
		}
		*args = append(*args, name)
		if filter != "" {
			filter += " AND "
		}
		filter += condition
	}
	return filter
}

// key is the column of the order as text, as cursors hold it.
func (t *reader) key(order string) string {
	if order == "id" {
		return "''"
	}
	if t.dialect == sqldb.SQLite {
		return "CAST(" + order + " AS TEXT)"
	}
	return "to_char(" + order + ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}

func cursor(key string, id int64) string { return key + "~" + strconv.FormatInt(id, 10) }

func parseCursor(text string) (key string, id int64, err error) {
	key, number, ok := strings.Cut(text, "~")
	id, err = strconv.ParseInt(number, 10, 64)
	if !ok || err != nil || len(key) > 40 || strings.Trim(key, "0123456789-:.TZ +") != "" {
		return "", 0, invalidCursor()
	}
	return key, id, nil
}

// payload are the columns of a payload: those redacted where there are any, none longer than MaxPayload.
func (t *reader) payload(wanted bool) string {
	if !wanted {
		return ""
	}
	text, size := "%s::text", "octet_length(%s::text)"
	if t.dialect == sqldb.SQLite {
		text, size = "%s", "length(CAST(%s AS BLOB))"
	}
	var b strings.Builder
	for _, column := range []string{"coalesce(redacted_args, args)", "coalesce(redacted_kwargs, kwargs)", "options"} {
		length := fmt.Sprintf(size, column)
		fmt.Fprintf(&b, ", CASE WHEN %s <= %d THEN %s END, %[1]s", length, outboxwatch.MaxPayload, fmt.Sprintf(text, column))
	}
	return b.String() + ", redacted_args IS NOT NULL, redacted_kwargs IS NOT NULL"
}

// payloadScan reads the columns of a payload.
type payloadScan struct{ args, kwargs, options sql.NullString }

func (s *payloadScan) into(p *outboxwatch.Payload) []any {
	return []any{&s.args, &p.ArgsSize, &s.kwargs, &p.KwargsSize, &s.options, &p.OptionsSize, &p.RedactedArgs, &p.RedactedKwargs}
}

func (s *payloadScan) set(p *outboxwatch.Payload) {
	p.Args, p.Kwargs, p.Options = raw(s.args), raw(s.kwargs), raw(s.options)
}

// raw is a column of JSON, nil if it is not JSON.
func raw(s sql.NullString) json.RawMessage {
	if !s.Valid || !json.Valid([]byte(s.String)) {
		return nil
	}
	return json.RawMessage(s.String)
}

func (t *reader) scanRow(rows *sql.Rows, payload bool) (r outboxwatch.Row, key string, err error) {
	var created, updated, retry moment
	var p payloadScan
	into := []any{&r.ID, &r.TaskID, &r.TaskName, &created, &updated, &retry, &r.Retries, &r.SchemaVersion, &key}
	if payload {
		into = append(into, p.into(&r.Payload)...)
	}
	if err := rows.Scan(into...); err != nil {
		return r, "", err
	}
	p.set(&r.Payload)
	r.CreatedAt, r.UpdatedAt, r.RetryAfter = created.Time, updated.Time, retry.Time
	r.State = outboxwatch.StateOf(r, t.now, t.stale)
	return r, key, nil
}

func (t *reader) scanDead(rows *sql.Rows, payload bool) (d outboxwatch.DeadLetter, err error) {
	var created, dead moment
	var p payloadScan
	into := []any{&d.ID, &d.TaskID, &d.TaskName, &created, &dead, &d.Retries, &d.SchemaVersion, &d.Reason}
	if payload {
		into = append(into, p.into(&d.Payload)...)
	}
	if err := rows.Scan(into...); err != nil {
		return d, err
	}
	p.set(&d.Payload)
	d.CreatedAt, d.DeadAt = created.Time, dead.Time
	return d, nil
}
