package tables

import (
	"context"
	"database/sql"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// Requests implements history.Outbox.
func (d Store) Requests(ctx context.Context, f history.CommandFilter) (found []history.RequestSummary, next int64, err error) {
	defer d.engine.Annotate(&err, "list requests")
	limit := min(max(f.Limit, 1), 500)
	err = d.engine.Snapshot(ctx, func(q Reader) error {
		ids, err := newestRequests(ctx, q, f, limit+1)
		if err != nil {
			return err
		}
		if len(ids) > limit {
			ids = ids[:limit]
			next = ids[limit-1]
		}
		for _, id := range ids {
			r, err := readRequest(ctx, q, d.engine.Dialect(), id)
			if err != nil {
				return err
			}
			found = append(found, r)
		}
		return nil
	})
	return found, next, err
}

// newestRequests returns the IDs of at most limit requests with a command that matches, newest first. The IDs of the
// commands of a request follow each other, so that the rest of one is skipped however many commands it has.
func newestRequests(ctx context.Context, q Reader, f history.CommandFilter, limit int) ([]int64, error) {
	var ids []int64
	for {
		query, args := filterCommands(f)
		firsts, err := List[int64](ctx, q, `SELECT first FROM outbox WHERE command IN (`+query+` ORDER BY command DESC LIMIT ?)
			ORDER BY command DESC`, append(args, limit)...)
		if err != nil {
			return nil, err
		}
		for _, first := range firsts {
			if len(ids) > 0 && ids[len(ids)-1] == first {
				continue
			}
			if ids = append(ids, first); len(ids) == limit {
				return ids, nil
			}
		}
		if len(firsts) < limit {
			return ids, nil
		}
		f.Before = ids[len(ids)-1]
	}
}

// Request implements history.Outbox.
func (d Store) Request(ctx context.Context, id int64) (r history.RequestSummary, err error) {
	defer d.engine.Annotate(&err, "read request %d", id)
	err = d.engine.Snapshot(ctx, func(q Reader) error {
		r, err = readRequest(ctx, q, d.engine.Dialect(), id)
		return err
	})
	return r, err
}

func readRequest(ctx context.Context, q Reader, dialect Dialect, id int64) (history.RequestSummary, error) {
	r := history.RequestSummary{States: make(map[history.CommandState]int), Tasks: make(map[state.State]int)}
	first, err := commandsOf(ctx, q, `WHERE first = ? ORDER BY command LIMIT 1`, id)
	if err != nil {
		return r, err
	}
	if len(first) == 0 {
		return r, history.ErrNotFound
	}
	r.First = first[0]
	err = EachRow(ctx, q, `SELECT state, count(*), max(CASE WHEN summary <> ? THEN 1 ELSE 0 END),
			max(CASE WHEN target <> ? THEN 1 ELSE 0 END), sum(CASE WHEN answers LIKE '%"ok":false%' THEN 1 ELSE 0 END)
		FROM outbox WHERE first = ? GROUP BY state`, []any{r.First.Summary, r.First.Target, id}, func(rows *sql.Rows) error {
		var s history.CommandState
		var n, refused int
		var mixed, spread bool
		err := rows.Scan(&s, &n, &mixed, &spread, &refused)
		r.States[s], r.Mixed, r.Spread = n, r.Mixed || mixed, r.Spread || spread
		r.Refused += refused
		return err
	})
	if err != nil || r.First.Kind != "task" {
		return r, err
	}
	err = EachRow(ctx, q, dialect.taskStates, []any{id}, func(rows *sql.Rows) error {
		var s state.State
		var n int
		err := rows.Scan(&s, &n)
		r.Tasks[s] = n
		return err
	})
	return r, err
}
