package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/where"
)

// row is a row of tasks that may match.
type row struct {
	task int64
	sortKey
}

// rowCursor reads the rows that sources find, in the order of the list. It never splits rows with equal keys.
type rowCursor struct {
	q       tables.Reader
	o       sortOrder
	sources []source
	ranges  []plan // plans that also find all matching rows
	chunk   int    // minimum of rows to read at once: unsorted sources are read as a whole each time
	ranged  bool   // sources are ranges of times: sample narrows them

	from    sortKey // where reading continues, if begun
	begun   bool
	after   bool // from has been read
	rows    []row
	ended   bool
	skipped bool

	last     sortKey // of the last row that next has returned
	examined int     // rows
}

// start sets the first key to read.
func (w *rowCursor) start(k sortKey) { w.from, w.begun, w.after = k, true, false }

// next returns about want rows, more if the keys of the last ones are equal, and whether there may be others.
func (w *rowCursor) next(ctx context.Context, want int) ([]row, bool, error) {
	if len(w.rows) == 0 && !w.ended {
		if err := w.fill(ctx, want); err != nil {
			return nil, false, err
		}
	}
	rows := split(w.rows, want)
	if w.rows = w.rows[len(rows):]; len(rows) > 0 {
		w.last = rows[len(rows)-1].sortKey
	}
	w.examined += len(rows)
	return rows, len(w.rows) > 0 || !w.ended, nil
}

// split returns the first n rows, and those with the key of the last.
func split(rows []row, n int) []row {
	n = min(n, len(rows))
	for n > 0 && n < len(rows) && rows[n].sortKey == rows[n-1].sortKey {
		n++
	}
	return rows[:n]
}

// fill reads a chunk. Rows with its last key are left to the next chunk, which may have more of them.
func (w *rowCursor) fill(ctx context.Context, want int) error {
	for limit := max(want, w.chunk); ; limit *= 4 {
		rows, err := w.read(ctx, limit+1)
		if err != nil {
			return fmt.Errorf("walk tasks: %w", err)
		}
		if w.ended = len(rows) <= limit; !w.ended {
			n := limit
			for n > 0 && rows[n-1].sortKey == rows[limit].sortKey {
				n--
			}
			if rows = rows[:n]; n == 0 {
				continue
			}
			w.from, w.begun, w.after = rows[n-1].sortKey, true, true
		}
		w.rows = distinct(rows)
		return nil
	}
}

func (w *rowCursor) read(ctx context.Context, limit int) ([]row, error) {
	in := where.Always()
	if w.begun {
		in = w.o.after(w.from, !w.after)
	} else if w.o.column != "" {
		in = where.Exactly(w.o.column + " IS NOT NULL")
	}
	what := "task, " + w.o.value() + " AS value, clock"
	if !indexed(w.sources) {
		what = "task, +" + w.o.value() + " AS value, +clock AS clock" // + keeps SQLite from reading an index for its order
	}
	if w.ranged {
		var err error
		if in, err = w.sample(ctx, in, limit); err != nil {
			return nil, err
		}
	}
	text, args := merged(w.sources, what, in)
	rows := make([]row, 0, min(limit, 1000))
	err := tables.EachRow(ctx, w.q, text+w.o.orderBy("value", "clock")+" LIMIT ?", append(args, limit), func(selected *sql.Rows) error {
		var r row
		err := selected.Scan(&r.task, &r.value, &r.clock)
		rows = append(rows, r)
		return err
	})
	return rows, err
}

// merged returns the statement that selects the columns what of the rows of all sources for which in holds.
func merged(sources []source, what string, in where.Condition) (string, []any) {
	arms := make([]string, len(sources))
	var args []any
	for i, s := range sources {
		arms[i] = "SELECT " + what + " FROM " + s.from() + " WHERE (" + s.where + ") AND (" + in.SQL + ")"
		args = append(append(args, s.args...), in.Args...)
	}
	return strings.Join(arms, " UNION ALL "), args
}

// sample narrows a condition on a range of times: n rows at one end of the range bound the clock of the nth row in the order of
// the list. Times increase with clocks, so that SQLite need not sort most of the range.
func (w *rowCursor) sample(ctx context.Context, in where.Condition, n int) (where.Condition, error) {
	first := w.sources[0]
	text, args := merged([]source{first}, "clock", in)
	bound, direction, operator := "max", "ASC", "<="
	if w.o.descending {
		bound, direction, operator = "min", "DESC", ">="
	}
	err := tables.EachRow(ctx, w.q, "SELECT "+bound+"(clock), count(*) FROM ("+text+" ORDER BY "+first.column+" "+direction+" LIMIT ?)",
		append(args, n), func(rows *sql.Rows) error {
			var clock sql.NullInt64
			var sampled int
			err := rows.Scan(&clock, &sampled)
			if sampled == n {
				in = where.And(in, where.Exactly("clock "+operator+" ?", clock.Int64))
			}
			return err
		})
	return in, err
}

// skip moves the cursor, once, to the first row that all ranges can have. It ends the cursor if one range is empty.
func (w *rowCursor) skip(ctx context.Context) error {
	if w.skipped || w.ended {
		return nil
	}
	w.skipped = true
	extreme := "min"
	if w.o.descending {
		extreme = "max"
	}
	for _, p := range w.ranges {
		text, args := merged(p.sources, "clock", where.Always())
		clocks, err := tables.List[sql.NullInt64](ctx, w.q, "SELECT "+extreme+"(clock) FROM ("+text+")", args...)
		if err != nil {
			return fmt.Errorf("find start of range: %w", err)
		}
		if !clocks[0].Valid {
			w.rows, w.ended = nil, true
			return nil
		}
		first := sortKey{clock: clocks[0].Int64}
		if w.o.compare(first, w.last) > 0 {
			w.rows = slices.DeleteFunc(w.rows, func(r row) bool { return w.o.compare(r.sortKey, first) < 0 })
			if len(w.rows) == 0 && (!w.begun || w.o.compare(first, w.from) > 0) {
				w.start(first)
			}
		}
	}
	return nil
}

// distinct removes rows that several sources have found.
func distinct(rows []row) []row {
	kept := rows[:0]
	for i, r := range rows {
		repeated := false
		for j := len(kept) - 1; j >= 0 && kept[j].sortKey == r.sortKey && !repeated; j-- {
			repeated = kept[j].task == r.task
		}
		if !repeated {
			kept = append(kept, rows[i])
		}
	}
	return kept
}
