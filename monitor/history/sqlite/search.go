package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// maxPage is how many tasks a page has at most.
const maxPage = 500

// Tasks returns a page of the tasks that match.
func (d *DB) Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error) {
	var page history.TaskPage
	r.Limit = min(max(r.Limit, 1), maxPage)
	err := d.snapshot(ctx, func(q queryer) error {
		s, err := newSearch(ctx, q, r, d.limits, d.limits.walk)
		if err == nil {
			page, err = s.page(ctx)
		}
		return err
	})
	if err != nil {
		return history.TaskPage{}, fmt.Errorf("search history: %w", explain(err))
	}
	return page, nil
}

// Count returns how many match, exactly up to limit.
func (d *DB) Count(ctx context.Context, q query.Query, now time.Time, limit int) (history.Count, error) {
	var count history.Count
	err := d.snapshot(ctx, func(tx queryer) error {
		s, err := newSearch(ctx, tx, history.TaskRequest{Query: q, Now: now, Limit: limit}, d.limits, d.limits.count)
		if err == nil {
			count, err = s.count(ctx)
		}
		return err
	})
	if err != nil {
		return history.Count{}, fmt.Errorf("count history: %w", explain(err))
	}
	return count, nil
}

// Values returns values that a field of type Word, or State, has, which contain part without regard to case.
func (d *DB) Values(ctx context.Context, f query.Field, part string, limit int) ([]string, error) {
	if f != query.State && f.Type() != query.Word || !symbolic(f) {
		return nil, nil
	}
	c := compiler{q: d.read}
	used, err := c.values(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("list values: %w", explain(err))
	}
	values := make([]string, 0, limit)
	for _, s := range used {
		if strings.Contains(strings.ToLower(s.text), strings.ToLower(part)) {
			values = append(values, s.text)
		}
	}
	slices.Sort(values)
	return values[:min(limit, len(values))], nil
}

// symbolic reports whether the column of a field holds symbols.
func symbolic(f query.Field) bool {
	switch f {
	case query.State, query.Name, query.Worker, query.Queue, query.Client, query.Exchange, query.RoutingKey:
		return true
	default:
		return false
	}
}

// snapshot lets f read the history as it is at one moment.
func (d *DB) snapshot(ctx context.Context, f func(q queryer) error) error {
	tx, err := d.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	return f(tx)
}

// search is one search at work.
type search struct {
	q      queryer
	r      history.TaskRequest
	o      order
	limits limits
	most   int  // rows to look at
	exact  bool // SQL decides all
	reader state.Reader
	producer
}

// candidate is a task that may match, with its place.
type candidate struct {
	state.Position
	task state.Task
}

// page walks until the page is full, or enough tasks have been looked at.
func (s *search) page(ctx context.Context) (history.TaskPage, error) {
	var found []candidate
	unfolded, want := 0, s.r.Limit+1
	for {
		rows, more, err := s.next(ctx, want)
		if err != nil {
			return history.TaskPage{}, err
		}
		batch, err := s.load(ctx, rows)
		if err != nil {
			return history.TaskPage{}, err
		}
		unfolded += len(batch)
		for _, b := range batch {
			if s.exact || s.r.Query.Match(&b.task, s.r.Now) {
				found = append(found, b)
			}
		}
		switch _, looked := s.place(); {
		case len(found) > s.r.Limit:
			return s.full(found[:s.r.Limit]), nil
		case !more:
			return s.ended(found), nil
		case unfolded >= s.limits.unfold || looked >= s.most:
			return s.stopped(found, max(unfolded, looked)), nil
		}
		if want = min(2*want, 1000); s.exact && s.rest().sql == always.sql {
			want = s.r.Limit + 1 - len(found)
		}
	}
}

// full makes a page of tasks after which there are more.
func (s *search) full(found []candidate) history.TaskPage {
	last := found[len(found)-1].Position
	return s.make(found, &last)
}

// ended makes a page of the last tasks.
func (s *search) ended(found []candidate) history.TaskPage { return s.make(found, nil) }

// stopped makes a page of what was found before the search was given up.
func (s *search) stopped(found []candidate, looked int) history.TaskPage {
	k, _ := s.place()
	page := s.make(found, new(s.o.behind(k)))
	page.Searched = looked
	return page
}

// make makes a page of tasks, given where the walk goes on.
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

// load unfolds the tasks of rows for which the rest holds, in their exact order, without those that come before
// the page.
func (s *search) load(ctx context.Context, rows []row) ([]candidate, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	tasks := make([]int64, len(rows))
	values := make(map[int64]int64, len(rows))
	low, high := int64(math.MaxInt64), int64(0)
	for i, r := range rows {
		tasks[i], values[r.task] = r.task, r.value
		low, high = min(low, r.task), max(high, r.task)
	}
	check := s.rest()
	found, err := s.q.QueryContext(ctx, `SELECT task, id, body FROM tasks JOIN events USING (task)
		WHERE task IN (SELECT value FROM json_each(?)) AND (`+check.sql+")", append([]any{numbers(tasks)}, check.bind(low, high)...)...)
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	batch := make([]candidate, 0, len(rows))
	err = scan(found, func() error {
		var task int64
		var id any
		var events sql.RawBytes
		if err := found.Scan(&task, &id, &events); err != nil {
			return err
		}
		t, err := s.reader.Task(idText(id), events)
		if err != nil {
			return fmt.Errorf("task %s: %w", idText(id), err)
		}
		p := state.Position{Stamp: t.Stamp, Value: values[task], ID: t.ID}
		if s.r.From == nil || s.o.comparePositions(p, *s.r.From) > 0 {
			batch = append(batch, candidate{p, t})
		}
		return nil
	})
	slices.SortFunc(batch, func(a, b candidate) int { return s.o.comparePositions(a.Position, b.Position) })
	return batch, wrap("read tasks", err)
}
