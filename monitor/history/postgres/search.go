package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

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
	err = d.search(ctx, r, func(s *search) error {
		page, err = s.page(ctx)
		return err
	})
	return page, err
}

// Count returns how many tasks match, exactly up to limit.
func (d *DB) Count(ctx context.Context, q query.Query, now time.Time, limit int) (count history.Count, err error) {
	defer annotate(&err, "count history")
	err = d.search(ctx, history.TaskRequest{Query: q, Now: now, Limit: limit}, func(s *search) error {
		count, err = s.count(ctx)
		return err
	})
	return count, err
}

// search is one call of Tasks or Count.
type search struct {
	q        tables.Reader
	r        history.TaskRequest
	o        order
	limits   limits
	matching where.Condition
	slow     bool // the planner found no way that was fast enough: the list is looked at row by row
	reader   state.Reader
	decoded  int
	looked   int // rows of the list that were looked at, where slow
}

// fast is how long a statement of a search may take before the list is looked at row by row.
const fast = 700 * time.Millisecond

// search calls f with a search. If the server gives up a statement, f is called again with one that looks at a bounded number
// of tasks, in their order.
func (d *DB) search(ctx context.Context, r history.TaskRequest, f func(s *search) error) error {
	for _, slow := range []bool{d.alwaysSlow, true} {
		err := d.snapshot(ctx, func(q tables.Reader) error {
			if !slow {
				_, err := tables.Number[string](ctx, q, `SELECT set_config('statement_timeout', $1, true)`, strconv.FormatInt(fast.Milliseconds(), 10))
				if err != nil {
					return err
				}
			}
			matching, err := where.Compile(ctx, r.Query.Expr(), r.Now, &compiler{q: q, used: make(map[query.Field][]string)})
			if err != nil {
				return err
			}
			if r.Until != 0 {
				matching = where.And(matching, where.Exactly("last_receipt <= ? AND (lost IS NULL OR lost <= ?)", r.Until, r.Until))
			}
			return f(&search{q: q, r: r, o: orderOf(r.Sort, r.Newer), limits: d.limits, matching: matching, slow: slow})
		})
		if e, ok := errors.AsType[*pgconn.PgError](err); slow || !ok || e.Code != stateCanceled || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// candidate is a task that may match, with its position.
type candidate struct {
	state.Position
	task state.Task
}

// page reads rows until the page is full, or too many were examined.
func (s *search) page(ctx context.Context) (history.TaskPage, error) {
	var found []candidate
	want, after := s.r.Limit+1, s.r.From
	for {
		batch, last, err := s.next(ctx, after, want)
		if err != nil {
			return history.TaskPage{}, err
		}
		for i := range batch {
			if s.matching.Exact || s.r.Query.Match(&batch[i].task, s.r.Now) {
				found = append(found, batch[i])
			}
		}
		switch {
		case len(found) > s.r.Limit:
			return s.make(found[:s.r.Limit], &found[s.r.Limit-1].Position), nil
		case last == nil:
			return s.make(found, nil), nil
		case s.decoded >= s.limits.examined || s.looked >= s.limits.looked:
			page := s.make(found, last)
			page.Searched = max(s.decoded, s.looked)
			return page, nil
		}
		after, want = last, min(4*want, s.limits.chunk)
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

// next decodes up to want tasks after a position for which the condition holds. It returns the position of the last one, or of
// the last row looked at, nil if there are no more.
func (s *search) next(ctx context.Context, after *state.Position, want int) (batch []candidate, last *state.Position, err error) {
	all := append(s.listed(after), s.matching)
	if s.slow {
		end, more, err := s.window(ctx, after)
		if err != nil || end == nil {
			return nil, nil, err
		}
		all = append(all, s.o.upTo(*end))
		if more {
			last = end
		}
	}
	is := where.And(all...)
	read := 0
	err = tables.EachRow(ctx, s.q, `SELECT id, body, call, dup, `+s.o.value()+`, clock, micros, origin FROM tasks WHERE `+is.SQL+s.o.by()+` LIMIT ?`,
		append(slices.Clone(is.Args), want), func(rows *sql.Rows) error {
			var c candidate
			var body, call sql.RawBytes
			var dup state.Duplicates
			if err := rows.Scan(&c.ID, &body, &call, &dup, &c.Value, &c.Stamp.Clock, &c.Stamp.Micros, &c.Stamp.Origin); err != nil {
				return err
			}
			read++
			var err error
			if c.task, err = s.reader.Task(c.ID, body); err != nil {
				return fmt.Errorf("task %s: %w", c.ID, err)
			}
			if s.r.Query.Mentions(query.Dup) {
				c.task.CallID, c.task.Duplicates = callID(call), dup
			}
			batch = append(batch, c)
			return nil
		})
	s.decoded += read
	if read == want {
		last = &batch[read-1].Position
	}
	return batch, last, tables.Wrap("read tasks", err)
}

// listed selects what the list has after a position.
func (s *search) listed(after *state.Position) []where.Condition {
	all := []where.Condition{where.Always()}
	if after != nil {
		all = append(all, s.o.after(*after))
	}
	if s.o.column != "" {
		all = append(all, where.Exactly(s.o.column+" IS NOT NULL"))
	}
	return all
}

// window returns the position of the last of the next rows that are looked at, nil if there are none, and whether there are more.
func (s *search) window(ctx context.Context, after *state.Position) (end *state.Position, more bool, err error) {
	is := where.And(s.listed(after)...)
	n := 0
	err = tables.EachRow(ctx, s.q, `SELECT id, `+s.o.value()+`, clock, micros, origin FROM tasks WHERE `+is.SQL+s.o.by()+` LIMIT ?`,
		append(slices.Clone(is.Args), s.limits.window), func(rows *sql.Rows) error {
			var p state.Position
			n++
			err := rows.Scan(&p.ID, &p.Value, &p.Stamp.Clock, &p.Stamp.Micros, &p.Stamp.Origin)
			end = &p
			return err
		})
	s.looked += n
	return end, n == s.limits.window, err
}

// count returns how many tasks match, up to the limit.
func (s *search) count(ctx context.Context) (history.Count, error) {
	if s.matching.Exact && !s.slow {
		n, err := tables.Number[int](ctx, s.q, `SELECT count(*) FROM (SELECT 1 FROM tasks WHERE `+s.matching.SQL+` LIMIT ?) AS found`,
			append(slices.Clone(s.matching.Args), s.r.Limit+1)...)
		return history.Count{N: min(n, s.r.Limit), Exact: n <= s.r.Limit}, err
	}
	n := 0
	var after *state.Position
	for want := 1000; ; want = min(4*want, s.limits.chunk) {
		batch, last, err := s.next(ctx, after, want)
		if err != nil {
			return history.Count{}, err
		}
		for i := range batch {
			if s.matching.Exact || s.r.Query.Match(&batch[i].task, s.r.Now) {
				n++
			}
		}
		switch {
		case n > s.r.Limit:
			return history.Count{N: s.r.Limit}, nil
		case last == nil:
			return history.Count{N: n, Exact: true}, nil
		case s.decoded >= s.limits.examined || s.looked >= s.limits.looked:
			return history.Count{N: n}, nil
		}
		after = last
	}
}

// order is the order in which rows are read.
type order struct {
	column     string // empty for the order of stamps
	descending bool
}

func orderOf(s query.Sort, newer bool) order {
	o := order{descending: s.Ascending == newer}
	if s.Field.Sortable() {
		o.column = where.Column(s.Field)
	}
	return o
}

// value is the expression for state.Position.Value.
func (o order) value() string {
	if o.column == "" {
		return "0::bigint"
	}
	return o.column
}

// columns are those that rows are sorted by.
func (o order) columns() []string {
	list := []string{"clock", "micros", "origin", "id"}
	if o.column != "" {
		list = append([]string{o.column}, list...)
	}
	return list
}

// by returns an ORDER BY clause.
func (o order) by() string {
	direction := " ASC"
	if o.descending {
		direction = " DESC"
	}
	return " ORDER BY " + strings.Join(o.columns(), direction+", ") + direction
}

// after selects rows after a position, and upTo those before it and at it.
func (o order) after(p state.Position) where.Condition {
	return o.compared(map[bool]string{false: " > ", true: " < "}[o.descending], p)
}

func (o order) upTo(p state.Position) where.Condition {
	return o.compared(map[bool]string{false: " <= ", true: " >= "}[o.descending], p)
}

func (o order) compared(operator string, p state.Position) where.Condition {
	args := []any{p.Stamp.Clock, p.Stamp.Micros, p.Stamp.Origin, p.ID}
	if o.column != "" {
		args = append([]any{p.Value}, args...)
	}
	return where.Exactly("("+strings.Join(o.columns(), ", ")+")"+operator+"(?"+strings.Repeat(", ?", len(args)-1)+")", args...)
}

// callID returns the call of a column, zero if it has none.
func callID(column []byte) (c state.CallID) {
	if len(column) == len(c) {
		copy(c[:], column)
	}
	return c
}
