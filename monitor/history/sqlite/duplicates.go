package sqlite

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
)

// group is a row of duplicates.
type group struct {
	key     any // call, or tasks.task of a single task
	name, n int64
	newest  int64
	marks   int64
}

// DuplicateGroups returns a page of groups.
func (d *DB) DuplicateGroups(ctx context.Context, r history.DuplicateRequest) (page history.DuplicatePage, err error) {
	defer annotate(&err, "read duplicates")
	r.Limit, r.Tasks = min(max(r.Limit, 1), maxPage), min(max(r.Tasks, 1), history.MaxDuplicateTasks)
	err = d.snapshot(ctx, func(q tables.Reader) error {
		found, err := d.groupRows(ctx, q, r)
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
			if page.Groups[i], err = d.duplicateGroup(ctx, q, g, r.Tasks); err != nil {
				return err
			}
		}
		return nil
	})
	return page, err
}

// groupRows reads one row more than r.Limit. It merges an index range for each set of marks, or reads those of a name.
func (d *DB) groupRows(ctx context.Context, q tables.Reader, r history.DuplicateRequest) ([]group, error) {
	const columns = `SELECT key, name, n, newest, marks FROM duplicates INDEXED BY `
	index, order, after := "newest", "newest DESC", "newest < ?"
	var position []any
	if r.After != nil {
		position = []any{r.After.Newest}
	}
	if r.Most {
		index, order, after = "n", "n DESC, newest DESC", "(n, newest) < (?, ?)"
		if r.After != nil {
			position = []any{r.After.Tasks, r.After.Newest}
		}
	}
	tail := ` ORDER BY ` + order + ` LIMIT ?`
	if r.After != nil {
		tail = ` AND ` + after + tail
	}
	var parts []string
	var args []any
	if r.Name != "" {
		name, ok := d.symbols.symbol(r.Name)
		if !ok {
			return nil, nil
		}
		if index = "name"; r.Most {
			index = "name_n"
		}
		where := `name = ? AND (? = 0 OR marks & ? <> 0)`
		parts = append(parts, columns+`duplicates_by_`+index+` WHERE `+where+tail)
		args = append(append(args, name, r.Marks, r.Marks), append(position, r.Limit+1)...)
	} else {
		for marks := range state.AllDuplicates + 1 {
			if r.Marks == 0 || r.Marks&marks != 0 {
				parts = append(parts, `SELECT * FROM (`+columns+`duplicates_by_`+index+` WHERE marks = ?`+tail+`)`)
				args = append(append(append(args, marks), position...), r.Limit+1)
			}
		}
	}
	query := strings.Join(parts, ` UNION ALL `) + ` ORDER BY ` + order + ` LIMIT ?`
	if len(parts) == 1 {
		query = `SELECT * FROM (` + parts[0] + `) ORDER BY ` + order + ` LIMIT ?`
	}
	var found []group
	err := tables.EachRow(ctx, q, query, append(args, r.Limit+1), func(rows *sql.Rows) error {
		var g group
		err := rows.Scan(&g.key, &g.name, &g.n, &g.newest, &g.marks)
		found = append(found, g)
		return err
	})
	return found, err
}

// duplicateGroup reads the newest tasks of a group.
func (d *DB) duplicateGroup(ctx context.Context, q tables.Reader, row group, limit int) (g history.DuplicateGroup, err error) {
	g = history.DuplicateGroup{Name: d.symbols.text(row.name), N: int(row.n), Marks: state.Duplicates(row.marks), Position: row.newest}
	const at = `coalesce(sent, received, started, updated)`
	where, oldest := `task = ?`, row.key
	if call, ok := row.key.([]byte); ok {
		copy(g.Key.Call[:], call)
		where = `call = ? AND call > x'00'`
	}
	var reader state.Reader
	err = tables.EachRow(ctx, q, `SELECT id, dup, call, `+at+`, body FROM tasks JOIN events USING (task) WHERE `+where+
		` ORDER BY task DESC LIMIT ?`, []any{row.key, limit}, func(rows *sql.Rows) error {
		var id any
		var dup, when int64
		var call, body sql.RawBytes
		if err := rows.Scan(&id, &dup, &call, &when, &body); err != nil {
			return err
		}
		t, err := reader.Task(idText(id), body)
		if err != nil {
			return err
		}
		t.CallID = callID(call)
		t.Duplicates = state.Duplicates(dup)
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
	first, err := tables.Number[int64](ctx, q, `SELECT `+at+` FROM tasks WHERE `+where+` ORDER BY task LIMIT 1`, oldest)
	g.Oldest = time.UnixMicro(first).UTC()
	return g, err
}

// DuplicateGroup returns one group. A call that occurs once is a group of one task.
func (d *DB) DuplicateGroup(ctx context.Context, key history.DuplicateKey, limit int) (g history.DuplicateGroup, err error) {
	defer annotate(&err, "read duplicates of a call")
	err = d.snapshot(ctx, func(q tables.Reader) error {
		row := group{key: key.Call[:]}
		query, arg := `SELECT coalesce(name, 0), 1, task, dup FROM tasks WHERE call = ? AND call > x'00' ORDER BY task DESC LIMIT 1`, any(key.Call[:])
		if !key.Call.Known() {
			query, arg = `SELECT coalesce(name, 0), 1, task, dup FROM tasks WHERE id = ?`, idValue(key.TaskID)
		}
		scan := func(rows *sql.Rows) error { return rows.Scan(&row.name, &row.n, &row.newest, &row.marks) }
		if err := tables.EachRow(ctx, q, query, []any{arg}, scan); err != nil {
			return err
		}
		if row.n == 0 {
			return history.ErrNotFound
		}
		if !key.Call.Known() {
			row.key = row.newest
		}
		err := tables.EachRow(ctx, q, `SELECT name, n, newest, marks FROM duplicates WHERE key = ?`, []any{row.key}, scan)
		if err == nil {
			g, err = d.duplicateGroup(ctx, q, row, min(max(limit, 1), history.MaxDuplicateTasks))
		}
		return err
	})
	return g, tables.NotFound(err)
}

// statsAge is how old DuplicateStats may be.
const statsAge = 10 * time.Second

// taskCount caches the number of tasks. It is safe for concurrent use.
type taskCount struct {
	mu sync.Mutex
	at time.Time
	n  int
}

// DuplicateStats summarizes the groups. Only the number of all tasks may be old: it takes longest.
func (d *DB) DuplicateStats(ctx context.Context) (s history.DuplicateStats, err error) {
	defer annotate(&err, "count duplicates")
	if s.Tasks, err = d.countTasks(ctx); err != nil {
		return s, err
	}
	const counts = `SELECT (SELECT value FROM meta WHERE key = ?), (SELECT value FROM meta WHERE key = ?),
		(SELECT sum(n) FROM ungrouped), (SELECT sum(last - done) FROM duplicate_steps)`
	var groups, grouped, ungrouped, pending sql.NullInt64
	err = d.read.QueryRowContext(ctx, counts, metaGroups, metaGrouped).Scan(&groups, &grouped, &ungrouped, &pending)
	if err != nil {
		return s, err
	}
	s.Groups, s.Grouped, s.Ungrouped, s.Pending = int(groups.Int64), int(grouped.Int64), int(ungrouped.Int64), int(pending.Int64)
	err = tables.EachRow(ctx, d.read, `SELECT name, n FROM ungrouped ORDER BY n DESC, name LIMIT 20`, nil, func(rows *sql.Rows) error {
		var name int64
		var n history.NameCount
		err := rows.Scan(&name, &n.N)
		n.Name = d.symbols.text(name)
		s.UngroupedNames = append(s.UngroupedNames, n)
		return err
	})
	return s, err
}

// countTasks returns the number of tasks, which may be statsAge old.
func (d *DB) countTasks(ctx context.Context) (int, error) {
	c := &d.taskCount
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || d.now().Sub(c.at).Abs() >= statsAge {
		n, err := tables.Number[int](ctx, d.read, `SELECT count(*) FROM tasks`)
		if err != nil {
			return 0, err
		}
		c.at, c.n = d.now(), n
	}
	return c.n, nil
}
