package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// maxPage bounds the tasks of a page.
const maxPage = 500

// Tasks returns a page of the tasks that match.
func (d *DB) Tasks(ctx context.Context, r history.TaskRequest) (page history.TaskPage, err error) {
	defer annotate(&err, "search history")
	r.Limit = min(max(r.Limit, 1), maxPage)
	if r.Sort.Field.Alphabetical() {
		return history.TasksByWord(ctx, d, r)
	}
	err = d.snapshot(ctx, func(q tables.Reader) error {
		s, err := newSearch(ctx, q, r, d.limits, false)
		if err == nil {
			page, err = s.page(ctx)
		}
		return err
	})
	return page, err
}

// Count returns how many tasks match, exactly up to limit.
func (d *DB) Count(ctx context.Context, q query.Query, now time.Time, limit int) (count history.Count, err error) {
	defer annotate(&err, "count history")
	err = d.snapshot(ctx, func(tx tables.Reader) error {
		s, err := newSearch(ctx, tx, history.TaskRequest{Query: q, Now: now, Limit: limit}, d.limits, true)
		if err == nil {
			count, err = s.count(ctx)
		}
		return err
	})
	return count, err
}

// newestTasks is how many tasks Values reads for a field without an index.
const newestTasks = 10_000

// Values returns at most limit values of a field of type Word, or State, that contain part, ignoring case.
func (d *DB) Values(ctx context.Context, f query.Field, part string, limit int) (values []string, err error) {
	defer annotate(&err, "list values")
	var used []symbol
	switch column := where.Column(f); {
	case byState(f):
		c := compiler{q: d.read}
		used, err = c.usedSymbols(ctx, f)
	case f == query.Client || f == query.Exchange || f == query.RoutingKey:
		used, err = symbolsOf(ctx, d.read, `SELECT symbol, text FROM symbols WHERE symbol IN (
			SELECT `+column+` FROM (SELECT `+column+` FROM tasks ORDER BY clock DESC LIMIT ?))`, newestTasks)
	}
	if err != nil {
		return nil, err
	}
	values = []string{}
	for _, s := range used {
		if strings.Contains(strings.ToLower(s.text), strings.ToLower(part)) {
			values = append(values, s.text)
		}
	}
	slices.Sort(values)
	return values[:min(limit, len(values))], nil
}

// Words returns values of a field that tasks have, in alphabetical order.
func (d *DB) Words(ctx context.Context, r history.WordRange) (words []string, err error) {
	defer annotate(&err, "list words")
	after, direction := "text > ?1", ""
	if r.Descending {
		direction = " DESC"
		if r.After != "" {
			after = "text < ?1"
		}
	}
	return tables.List[string](ctx, d.read, `SELECT text FROM symbols
		WHERE text <> '' AND `+after+` AND EXISTS (SELECT 1 FROM tasks WHERE `+where.Column(r.Field)+` = symbols.symbol)
		ORDER BY text`+direction+` LIMIT ?2`, r.After, r.Limit)
}

// snapshot calls f in a read transaction.
func (d *DB) snapshot(ctx context.Context, f func(q tables.Reader) error) error {
	tx, err := d.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	return f(tx)
}

// search is one call of Tasks or Count.
type search struct {
	q      tables.Reader
	r      history.TaskRequest
	o      sortOrder
	limits limits
	exact  bool            // conditions in SQL suffice
	check  where.Condition // for rows of the cursor
	reader state.Reader
	rowCursor
}

// candidate is a task that may match, with its position.
type candidate struct {
	state.Position
	task state.Task
}

// maxBatch bounds the rows that are checked at once.
const maxBatch = 16_000

// page reads rows until the page is full, or too many were examined.
func (s *search) page(ctx context.Context) (history.TaskPage, error) {
	var found []candidate
	decoded, want := 0, s.r.Limit+1
	switch {
	case searchesTexts(s.check):
		want = max(want, s.limits.chunk) // looking into texts is expensive
	case !s.check.IsTrue():
		want *= 2
	}
	for {
		rows, more, err := s.next(ctx, want)
		if err != nil {
			return history.TaskPage{}, err
		}
		at := s.last
		if rows, err = s.checked(ctx, rows); err != nil {
			return history.TaskPage{}, err
		}
		none := len(rows) == 0
		for len(rows) > 0 && len(found) <= s.r.Limit && (s.exact || decoded < s.limits.decoded) {
			some := split(rows, max(s.r.Limit+1-len(found), decoded/4))
			if rows = rows[len(some):]; len(rows) > 0 {
				at = some[len(some)-1].sortKey
			} else {
				at = s.last
			}
			batch, err := s.load(ctx, some)
			if err != nil {
				return history.TaskPage{}, err
			}
			decoded += len(batch)
			for _, b := range batch {
				if s.exact || s.r.Query.Match(&b.task, s.r.Now) {
					found = append(found, b)
				}
			}
		}
		switch {
		case len(found) > s.r.Limit:
			return s.make(found[:s.r.Limit], &found[s.r.Limit-1].Position), nil
		case !more && len(rows) == 0:
			return s.make(found, nil), nil
		case !s.exact && decoded >= s.limits.decoded || s.examined >= s.limits.page:
			page := s.make(found, new(s.o.positionAfter(at)))
			page.Searched = max(decoded, s.examined)
			return page, nil
		}
		if none {
			if err := s.skip(ctx); err != nil {
				return history.TaskPage{}, err
			}
		}
		want = min(4*want, max(maxBatch, s.r.Limit))
	}
}

// make returns a page of tasks, given the position after which the next one starts.
func (s *search) make(found []candidate, on *state.Position) history.TaskPage {
	page := history.TaskPage{Tasks: make([]state.Task, len(found)), Next: on}
	for i := range found {
		page.Tasks[i] = found[i].task
	}
	if s.r.From != nil && len(found) > 0 {
		page.Prev = &found[0].Position
	}
	if s.r.Newer {
		slices.Reverse(page.Tasks)
		page.Next, page.Prev = page.Prev, page.Next
	}
	return page
}

// checked returns the rows for which the check holds.
func (s *search) checked(ctx context.Context, rows []row) ([]row, error) {
	if s.check.IsTrue() || len(rows) == 0 {
		return rows, nil
	}
	tasks := tasksOf(rows)
	// Row numbers follow the order of lists, except for rows that were written long before their newest event. The
	// first of those count as matches, so that the text index is searched over a narrow range.
	sorted := slices.Sorted(slices.Values(tasks))
	low, high := sorted[len(sorted)/50], sorted[len(sorted)-1]
	args, err := bind(ctx, s.check, s.q, low, high)
	if err != nil {
		return nil, err
	}
	// A join looks each row up as it comes; IN would make an index of the numbers first.
	found, err := tables.List[int64](ctx, s.q, "SELECT task FROM (SELECT value AS number FROM json_each(?)) CROSS JOIN tasks ON task = number WHERE "+s.check.SQL,
		append([]any{jsonArray(sorted)}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("check tasks: %w", err)
	}
	slices.Sort(found)
	return slices.DeleteFunc(rows, func(r row) bool {
		_, ok := slices.BinarySearch(found, r.task)
		return !ok
	}), nil
}

func tasksOf(rows []row) []int64 {
	tasks := make([]int64, len(rows))
	for i, r := range rows {
		tasks[i] = r.task
	}
	return tasks
}

// load decodes the tasks of rows, in their exact order, without those before the page.
func (s *search) load(ctx context.Context, rows []row) ([]candidate, error) {
	values := make(map[int64]int64, len(rows))
	for _, r := range rows {
		values[r.task] = r.value
	}
	batch := make([]candidate, 0, len(rows))
	duplicates := s.r.Query.Mentions(query.Dup)
	err := tables.EachRow(ctx, s.q, `SELECT task, id, body, call, dup FROM tasks JOIN events USING (task)
		WHERE task IN (SELECT value FROM json_each(?))`, []any{jsonArray(tasksOf(rows))}, func(found *sql.Rows) error {
		var task int64
		var id any
		var events, call sql.RawBytes
		var dup state.Duplicates
		if err := found.Scan(&task, &id, &events, &call, &dup); err != nil {
			return err
		}
		t, err := s.reader.Task(idText(id), events)
		if err != nil {
			return fmt.Errorf("task %s: %w", idText(id), err)
		}
		if duplicates {
			t.CallID = callID(call)
			t.Duplicates = dup
		}
		p := state.Position{Stamp: t.Stamp, Value: values[task], ID: t.ID}
		if s.r.From == nil || s.o.comparePositions(p, *s.r.From) > 0 {
			batch = append(batch, candidate{p, t})
		}
		return nil
	})
	slices.SortFunc(batch, func(a, b candidate) int { return s.o.comparePositions(a.Position, b.Position) })
	return batch, tables.Wrap("read tasks", err)
}

// count returns how many tasks match, up to the limit.
func (s *search) count(ctx context.Context) (history.Count, error) {
	if s.exact {
		return s.countRows(ctx)
	}
	n, decoded := 0, 0
	for want := s.limits.chunk; ; want = min(4*want, maxBatch) {
		rows, more, err := s.next(ctx, want)
		if err == nil {
			rows, err = s.checked(ctx, rows)
		}
		if err != nil {
			return history.Count{}, err
		}
		batch, err := s.load(ctx, rows)
		if err != nil {
			return history.Count{}, err
		}
		for i := range batch {
			if s.r.Query.Match(&batch[i].task, s.r.Now) {
				n++
			}
		}
		decoded += len(batch)
		switch {
		case n > s.r.Limit:
			return history.Count{N: s.r.Limit}, nil
		case !more:
			return history.Count{N: n, Exact: true}, nil
		case decoded >= s.limits.decoded || s.examined >= s.limits.count:
			return history.Count{N: n}, nil
		}
	}
}

// countRows counts where conditions in SQL suffice.
func (s *search) countRows(ctx context.Context) (history.Count, error) {
	text, args := merged(s.sources, "task", where.Always())
	if len(s.sources) > 1 { // they may overlap
		text = "SELECT DISTINCT task FROM (" + text + ")"
	}
	most := s.r.Limit + 1
	if !s.check.IsTrue() {
		if most = s.limits.count; s.chunk > 0 {
			most = s.limits.lookups
		}
	}
	text, args = text+" LIMIT ?", append(args, most)
	read, err := tables.Number[int](ctx, s.q, "SELECT count(*) FROM ("+text+")", args...)
	n := read
	if err == nil && !s.check.IsTrue() {
		n, err = tables.Number[int](ctx, s.q, "SELECT count(*) FROM (SELECT 1 FROM tasks JOIN ("+text+") USING (task) WHERE "+s.check.SQL+" LIMIT ?)",
			slices.Concat(args, s.check.Args, []any{s.r.Limit + 1})...)
	}
	if err != nil {
		return history.Count{}, fmt.Errorf("count tasks: %w", err)
	}
	return history.Count{N: min(n, s.r.Limit), Exact: n <= s.r.Limit && read < most}, nil
}
