package tables

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// CommandColumns are those of the table outbox.
const (
	CommandColumns = `command, ` + newColumns
	newColumns     = `first, schema, kind, grp, target, summary, payload, task, actor, state, attempts,
	deferrals, error, expected, answers, created, due, expires, claimed, sent, done`
)

// commandsOf returns the commands that a WHERE clause selects.
func commandsOf(ctx context.Context, q Reader, where string, args ...any) ([]history.Command, error) {
	return readCommands(ctx, q, `SELECT `+CommandColumns+` FROM outbox `+where, args...)
}

// readCommands returns the commands whose columns a statement returns.
func readCommands(ctx context.Context, q Reader, statement string, args ...any) ([]history.Command, error) {
	var found []history.Command
	err := EachRow(ctx, q, statement, args, func(rows *sql.Rows) error {
		c, err := readCommand(rows)
		found = append(found, c)
		return err
	})
	return found, err
}

func readCommand(rows *sql.Rows) (c history.Command, err error) {
	var expected, answers string
	var created, due int64
	var expires, claimed, sent, done sql.NullInt64
	err = rows.Scan(&c.ID, &c.RequestID, &c.Schema, &c.Kind, &c.Group, &c.Target, &c.Summary, &c.Payload, &c.TaskID, &c.Actor,
		&c.State, &c.Attempts, &c.Deferrals, &c.LastError, &expected, &answers, &created, &due, &expires, &claimed, &sent, &done)
	if err != nil {
		return c, err
	}
	c.CreatedAt, c.DueAt = time.UnixMicro(created), time.UnixMicro(due)
	c.ExpiresAt, c.ClaimedAt, c.SentAt, c.DoneAt = Moment(expires), Moment(claimed), Moment(sent), Moment(done)
	if err := decodeList(expected, &c.Expected); err != nil {
		return c, fmt.Errorf("read expected nodes of command %d: %w", c.ID, err)
	}
	var list []storedReply
	if err := decodeList(answers, &list); err != nil {
		return c, fmt.Errorf("read replies to command %d: %w", c.ID, err)
	}
	for _, a := range list {
		c.Replies = append(c.Replies, history.Reply{Node: a.Node, At: time.UnixMicro(a.At), Text: a.Text, OK: a.OK, Clock: a.Clock})
	}
	return c, nil
}

// decodeList reads a list as JSON. Most are empty.
func decodeList[T any](text string, into *[]T) error {
	if text == "[]" {
		return nil
	}
	return json.Unmarshal([]byte(text), into)
}

// Command implements history.Outbox.
func (d Store) Command(ctx context.Context, id int64) (c history.Command, err error) {
	defer d.engine.Annotate(&err, "read command %d", id)
	found, err := commandsOf(ctx, d.engine.Reader(), `WHERE command = ?`, id)
	if err != nil {
		return c, err
	}
	if len(found) == 0 {
		return c, history.ErrNotFound
	}
	return found[0], nil
}

// Commands implements history.Outbox.
func (d Store) Commands(ctx context.Context, f history.CommandFilter) (list []history.Command, next int64, err error) {
	defer d.engine.Annotate(&err, "list commands")
	limit := min(max(f.Limit, 1), 500)
	query, args := filterCommands(f)
	list, err = commandsOf(ctx, d.engine.Reader(), `WHERE command IN (`+query+` ORDER BY command DESC LIMIT ?) ORDER BY command DESC`,
		append(args, limit+1)...)
	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].ID
	}
	return list, next, err
}

// TasksWithCommands implements history.Outbox.
func (d Store) TasksWithCommands(ctx context.Context, kind string, tasks []string) (found []string, err error) {
	defer d.engine.Annotate(&err, "look for commands")
	condition, ids, err := d.engine.Dialect().anyOf(tasks)
	if err != nil {
		return nil, err
	}
	return List[string](ctx, d.engine.Reader(), `SELECT DISTINCT task FROM outbox
		WHERE task <> '' AND task `+condition+` AND kind = ?`, ids, kind)
}

// filterCommands returns a query for the keys of the commands that match. It merges one for each state, so that the
// newest are found without sorting all.
func filterCommands(f history.CommandFilter) (query string, args []any) {
	var where []string
	var values []any
	and := func(condition string, value any) {
		where, values = append(where, condition), append(values, value)
	}
	if f.Kind != "" {
		and(`kind = ?`, f.Kind)
	}
	if f.TaskID != "" {
		and(`task <> '' AND task = ?`, f.TaskID)
	}
	if f.Worker != "" {
		and(`command IN (SELECT command FROM outbox_nodes WHERE node = ?)`, f.Worker)
	}
	if f.Actor != "" {
		and(`actor = ?`, f.Actor)
	}
	if f.RequestID != 0 {
		and(`first = ?`, f.RequestID)
	}
	if f.Before != 0 {
		and(`command < ?`, f.Before)
	}
	where = append(where, `TRUE`)
	one := `SELECT command FROM outbox WHERE ` + strings.Join(where, ` AND `)
	if len(f.States) == 0 {
		return one, values
	}
	parts := make([]string, len(f.States))
	for i, state := range f.States {
		parts[i] = one + ` AND state = ?`
		args = append(append(args, values...), string(state))
	}
	return strings.Join(parts, ` UNION ALL `), args
}

// OutboxStats implements history.Outbox.
func (d Store) OutboxStats(ctx context.Context) (s history.OutboxStats, err error) {
	defer d.engine.Annotate(&err, "summarize commands")
	s.States = make(map[history.CommandState]int)
	err = d.engine.Snapshot(ctx, func(q Reader) error { return outboxStats(ctx, q, &s) })
	return s, err
}

// topFailures is the number of errors in OutboxStats.
const topFailures = 10

func outboxStats(ctx context.Context, q Reader, s *history.OutboxStats) error {
	err := EachRow(ctx, q, `SELECT state, sum(commands) FROM outbox_counts GROUP BY state HAVING sum(commands) > 0`, nil, func(rows *sql.Rows) error {
		var state history.CommandState
		var n int
		err := rows.Scan(&state, &n)
		s.States[state] = n
		return err
	})
	if err != nil {
		return err
	}
	s.DeadLetters = s.States[history.CommandDead]
	// Two ranges of outbox_open, since <> would look at all of it.
	other, err := List[int](ctx, q, `
		SELECT count(*) FROM outbox WHERE schema < ?1 AND state IN ('in_flight', 'pending') UNION ALL
		SELECT count(*) FROM outbox WHERE schema > ?1 AND state IN ('in_flight', 'pending')`, history.CommandSchema)
	if err != nil {
		return err
	}
	s.OtherSchema = other[0] + other[1]
	oldest, err := List[int64](ctx, q, `SELECT created FROM outbox WHERE state = 'pending' AND schema = ? ORDER BY command LIMIT 1`,
		history.CommandSchema)
	if err != nil {
		return err
	}
	if len(oldest) > 0 {
		s.OldestPending = time.UnixMicro(oldest[0])
	}
	return EachRow(ctx, q, `SELECT error, count(*) AS n FROM outbox WHERE state IN ('dead', 'pending') AND error <> ''
		GROUP BY error ORDER BY n DESC, error LIMIT ?`, []any{topFailures}, func(rows *sql.Rows) error {
		var f history.ErrorCount
		err := rows.Scan(&f.Error, &f.N)
		s.TopErrors = append(s.TopErrors, f)
		return err
	})
}
