package postgres

import (
	"context"
	"database/sql"
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

// DuplicateGroups returns a page of groups.
func (d *DB) DuplicateGroups(ctx context.Context, r history.DuplicateRequest) (page history.DuplicatePage, err error) {
	defer annotate(&err, "read duplicates")
	r.Limit, r.Tasks = min(max(r.Limit, 1), maxPage), min(max(r.Tasks, 1), history.MaxDuplicateTasks)
	err = d.snapshot(ctx, func(q tables.Reader) error {
		found, err := groupRows(ctx, q, r)
		if err != nil {
			return err
		}
		if len(found) > r.Limit {
			found = found[:r.Limit]
			last := found[r.Limit-1]
			page.Next = &history.DuplicatePosition{Tasks: int(last.n), Newest: last.newest}
		}
		page.Groups = make([]history.DuplicateGroup, len(found))
		for i, g := range found {
			if page.Groups[i], err = duplicateGroup(ctx, q, g, r.Tasks); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}

// groupRows reads one row more than r.Limit.
func groupRows(ctx context.Context, q tables.Reader, r history.DuplicateRequest) ([]group, error) {
	where, args, order := []string{`TRUE`}, []any(nil), `newest DESC`
	if r.Name != "" {
		where, args = append(where, `name = ?`), append(args, r.Name)
	}
	if r.Marks != 0 {
		where, args = append(where, `marks & ? <> 0`), append(args, int64(r.Marks))
	}
	if r.Most {
		order = `n DESC, newest DESC`
	}
	switch {
	case r.After == nil:
	case r.Most:
		where, args = append(where, `(n, newest) < (?, ?)`), append(args, r.After.Tasks, r.After.Newest)
	default:
		where, args = append(where, `newest < ?`), append(args, r.After.Newest)
	}
	var found []group
	err := tables.EachRow(ctx, q, `SELECT key, name, n, newest, marks FROM duplicates WHERE `+strings.Join(where, ` AND `)+` ORDER BY `+order+` LIMIT ?`,
		append(args, r.Limit+1), func(rows *sql.Rows) error {
			var g group
			var key []byte
			err := rows.Scan(&key, &g.name, &g.n, &g.newest, &g.marks)
			g.key = string(key)
			found = append(found, g)
			return err
		})
	return found, err
}

// duplicateGroup reads the newest tasks of a group.
func duplicateGroup(ctx context.Context, q tables.Reader, row group, limit int) (g history.DuplicateGroup, err error) {
	g = history.DuplicateGroup{Name: row.name, N: int(row.n), Marks: state.Duplicates(row.marks), Position: row.newest}
	const at = `coalesce(sent, received, started, updated)`
	where, arg := `call = ? AND call <> ''`, any([]byte(row.key))
	if len(row.key) == len(g.Key.Call) {
		copy(g.Key.Call[:], row.key)
	} else {
		where, arg = `task = ?`, int64(binary.BigEndian.Uint64([]byte(row.key)))
	}
	var reader state.Reader
	err = tables.EachRow(ctx, q, `SELECT id, dup, call, `+at+`, body FROM tasks WHERE `+where+` ORDER BY task DESC LIMIT ?`, []any{arg, limit}, func(rows *sql.Rows) error {
		var id string
		var dup, when int64
		var call, body sql.RawBytes
		if err := rows.Scan(&id, &dup, &call, &when, &body); err != nil {
			return err
		}
		t, err := reader.Task(id, body)
		if err != nil {
			return err
		}
		t.CallID, t.Duplicates = callID(call), state.Duplicates(dup)
		if len(g.Tasks) == 0 {
			g.Newest = time.UnixMicro(when).UTC()
		}
		g.Tasks = append(g.Tasks, t)
		return nil
	})
	if err != nil || len(g.Tasks) == 0 {
		return g, err
	}
	if !g.Key.Call.Known() {
		g.Key.TaskID, g.Oldest = g.Tasks[0].ID, g.Newest
		return g, nil
	}
	first, err := tables.Number[int64](ctx, q, `SELECT `+at+` FROM tasks WHERE `+where+` ORDER BY task LIMIT 1`, arg)
	g.Oldest = time.UnixMicro(first).UTC()
	return g, err
}

// DuplicateGroup returns one group. A call that occurs once is a group of one task.
func (d *DB) DuplicateGroup(ctx context.Context, key history.DuplicateKey, limit int) (g history.DuplicateGroup, err error) {
	defer annotate(&err, "read duplicates of a call")
	err = d.snapshot(ctx, func(q tables.Reader) error {
		row := group{key: string(key.Call[:])}
		query, arg := `SELECT coalesce(name, ''), 1, task, dup FROM tasks WHERE call = ? AND call <> '' ORDER BY task DESC LIMIT 1`, any(key.Call[:])
		if !key.Call.Known() {
			query, arg = `SELECT coalesce(name, ''), 1, task, dup FROM tasks WHERE id = ?`, key.TaskID
		}
		scan := func(rows *sql.Rows) error { return rows.Scan(&row.name, &row.n, &row.newest, &row.marks) }
		if err := tables.EachRow(ctx, q, query, []any{arg}, scan); err != nil {
			return err
		}
		if row.n == 0 {
			return history.ErrNotFound
		}
		if !key.Call.Known() {
			row.key = singleKey(row.newest)
		}
		err := tables.EachRow(ctx, q, `SELECT name, n, newest, marks FROM duplicates WHERE key = ?`, []any{[]byte(row.key)}, scan)
		if err == nil {
			g, err = duplicateGroup(ctx, q, row, min(max(limit, 1), history.MaxDuplicateTasks))
		}
		return err
	})
	return g, err
}

// MarkDuplicates sets what is known of tasks beside their events, at most maxPage of them.
func (d *DB) MarkDuplicates(ctx context.Context, tasks []state.Task) (err error) {
	defer annotate(&err, "mark duplicates")
	tasks = tasks[:min(len(tasks), maxPage)]
	places, ids := make(map[string]int, len(tasks)), make([]string, len(tasks))
	for i := range tasks {
		places[tasks[i].ID], ids[i] = i, tasks[i].ID
	}
	return tables.EachRow(ctx, d.read, `SELECT id, dup, call FROM tasks WHERE id = ANY($1)`, []any{ids}, func(rows *sql.Rows) error {
		var id string
		var dup int64
		var call sql.RawBytes
		if err := rows.Scan(&id, &dup, &call); err != nil {
			return err
		}
		i := places[id]
		tasks[i].CallID, tasks[i].Duplicates = callID(call), state.Duplicates(dup)
		return nil
	})
}

// statsAge is how old DuplicateStats may be.
const statsAge = 10 * time.Second

// slowCounts keeps counts that took long. It is safe for concurrent use.
type slowCounts struct {
	mu    sync.Mutex
	until time.Time
	stats history.DuplicateStats
}

// DuplicateStats summarizes the groups. It counts all tasks, and is kept as long as that may be, if it took long.
func (d *DB) DuplicateStats(ctx context.Context) (s history.DuplicateStats, err error) {
	defer annotate(&err, "count duplicates")
	c := &d.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.until) {
		return c.stats, nil
	}
	begin := time.Now()
	err = d.snapshot(ctx, func(q tables.Reader) error {
		const counts = `SELECT (SELECT count(*) FROM tasks), (SELECT count(*) FROM duplicates), (SELECT coalesce(sum(n), 0) FROM duplicates)::bigint,
			(SELECT count(*) FROM tasks WHERE call = ''), (SELECT coalesce(sum(last - done), 0) FROM duplicate_steps)::bigint`
		scan := func(rows *sql.Rows) error {
			return rows.Scan(&s.Tasks, &s.Groups, &s.Grouped, &s.Ungrouped, &s.Pending)
		}
		if err := tables.EachRow(ctx, q, counts, nil, scan); err != nil {
			return err
		}
		return tables.EachRow(ctx, q, `SELECT coalesce(name, ''), count(*) FROM tasks WHERE call = '' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20`, nil, func(rows *sql.Rows) error {
			var n history.NameCount
			err := rows.Scan(&n.Name, &n.N)
			s.UngroupedNames = append(s.UngroupedNames, n)
			return err
		})
	})
	if took := time.Since(begin); err == nil && took > statsAge/50 {
		c.until, c.stats = time.Now().Add(statsAge), s
	}
	return s, err
}
