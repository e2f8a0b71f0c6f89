package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
)

// row is a row of tasks that may match.
type row struct {
	task int64
	key
}

// producer yields rows in order, those of equal keys together.
type producer interface {
	// next returns about want rows, more if the last ones are equal. After the last rows there are no more.
	next(ctx context.Context, want int) (rows []row, more bool, err error)
	// place is the key up to which all rows have been yielded, and how many were looked at.
	place() (k key, looked int)
	// rest is what is left to check of the rows.
	rest() condition
	// total counts the rows, up to most and if SQL decides all, false if that takes to walk them.
	total(ctx context.Context, most int) (c history.Count, ok bool, err error)
}

// gathered yields rows that were all gathered at once.
type gathered struct {
	o      order
	rows   []row
	check  condition
	at     key
	looked int
}

func (g *gathered) next(_ context.Context, want int) ([]row, bool, error) {
	n := min(want, len(g.rows))
	for n > 0 && n < len(g.rows) && g.o.compare(g.rows[n].key, g.rows[n-1].key) == 0 {
		n++
	}
	rows := g.rows[:n]
	g.rows = g.rows[n:]
	if n > 0 {
		g.at = g.o.last(rows[n-1].key)
	}
	g.looked += n
	return rows, len(g.rows) > 0, nil
}

func (g *gathered) place() (key, int) { return g.at, g.looked }
func (g *gathered) rest() condition   { return g.check }

func (g *gathered) total(context.Context, int) (history.Count, bool, error) {
	return history.Count{N: len(g.rows), Exact: true}, g.check.sql == always.sql, nil
}

// gather reads all rows of a plan, from a key on if there is one.
func gather(ctx context.Context, q queryer, o order, p *plan, from *key) ([]row, error) {
	sources := p.sources
	if len(p.tasks) > 0 {
		listed := source{where: "task IN (SELECT value FROM json_each(?))", args: []any{numbers(p.tasks)}}
		sources = append([]source{listed}, sources...)
	}
	var all []row
	seen := make(map[int64]bool)
	for _, s := range sources {
		found, err := q.QueryContext(ctx, "SELECT task, "+o.value()+", clock FROM "+s.from()+" WHERE ("+s.where+") AND "+o.value()+" IS NOT NULL", s.args...)
		if err != nil {
			return nil, fmt.Errorf("gather tasks: %w", err)
		}
		err = scan(found, func() error {
			var r row
			if err := found.Scan(&r.task, &r.value, &r.clock); err != nil {
				return err
			}
			if !seen[r.task] {
				seen[r.task] = true
				all = append(all, r)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("gather tasks: %w", err)
		}
	}
	if from != nil {
		k := *from
		k.micros = 0
		all = slices.DeleteFunc(all, func(r row) bool { return o.compare(r.key, k) < 0 })
	}
	slices.SortFunc(all, func(a, b row) int { return o.compare(a.key, b.key) })
	return all, nil
}

// lastWindow is how wide windows become.
const lastWindow = 16_000

// walk yields rows by walking sorted sources side by side. What an index cannot check, SQL checks for the rows
// of one window after the other, each a known number of rows wide.
type walk struct {
	q       queryer
	o       order
	sources []source
	check   condition // for SQL
	ranges  []plan    // others that find all rows
	most    int       // rows to look at

	started   bool
	inclusive bool // at has not been yielded
	at        key
	window    int
	looked    int
	jumped    bool
}

func (w *walk) place() (key, int) { return w.at, w.looked }
func (w *walk) rest() condition   { return always }

func (w *walk) total(ctx context.Context, most int) (history.Count, bool, error) {
	if w.check.sql != always.sql {
		return history.Count{}, false, nil
	}
	c, err := countMerged(ctx, w.q, w.sources, always, most)
	return c, true, err
}

func (w *walk) next(ctx context.Context, want int) ([]row, bool, error) {
	if w.check.sql == always.sql {
		rows, more, err := w.read(ctx, want, nil)
		return rows, more, err
	}
	for w.looked < w.most {
		end, err := w.boundary(ctx)
		if err != nil {
			return nil, false, err
		}
		rows, more, err := w.read(ctx, want, end)
		if err != nil {
			return nil, false, err
		}
		if more {
			return rows, true, nil
		}
		w.looked += w.window
		if end == nil {
			return rows, false, nil
		}
		w.move(*end)
		w.window = min(4*w.window, lastWindow)
		if len(rows) > 0 {
			return rows, true, nil
		}
		if more, err = w.jump(ctx); err != nil || !more {
			return nil, false, err
		}
	}
	return nil, true, nil
}

// jump skips, once, the rows before the first one that every range has. It reports whether there is one.
func (w *walk) jump(ctx context.Context) (bool, error) {
	if w.jumped {
		return true, nil
	}
	w.jumped = true
	extreme, begin := "min", int64(math.MinInt64)
	if w.o.descending {
		extreme, begin = "max", math.MaxInt64
	}
	for _, p := range w.ranges {
		first := key{}
		found := false
		for _, s := range p.sources {
			clocks, err := list[sql.NullInt64](ctx, w.q, "SELECT "+extreme+"(clock) FROM "+s.from()+" WHERE "+s.where, s.args...)
			if err != nil {
				return false, fmt.Errorf("find start of range: %w", err)
			}
			k := key{clock: clocks[0].Int64, micros: begin}
			if clocks[0].Valid && (!found || w.o.compare(k, first) < 0) {
				first, found = k, true
			}
		}
		if !found {
			return false, nil
		}
		if w.o.compare(first, w.at) > 0 {
			w.at, w.inclusive = first, true
		}
	}
	return true, nil
}

// move goes behind all rows with the key's value and clock.
func (w *walk) move(k key) { w.at, w.inclusive, w.started = w.o.last(k), false, true }

func (w *walk) arms(what string, more condition, by string) (string, []any) {
	return merged(w.sources, what, more, by)
}

// merged writes sources as one statement. what is selected of each, where more must hold.
func merged(sources []source, what string, more condition, by string) (string, []any) {
	arms := make([]string, len(sources))
	var args []any
	for i, s := range sources {
		arms[i] = "SELECT " + what + " FROM " + s.from() + " WHERE (" + s.where + ") AND (" + more.sql + ")"
		args = append(append(args, s.args...), more.args...)
	}
	return strings.Join(arms, " UNION ALL ") + by, args
}

// from holds of the rows that have not been yielded.
func (w *walk) from() condition {
	if !w.started {
		return always
	}
	return w.o.beyond(w.at, w.inclusive)
}

// mergedWithin is merged, of which only the rows of one condition are left. It is evaluated once, not once for each
// source: the limit, which is none, keeps SQLite from moving it there.
func mergedWithin(sources []source, what string, in, within condition) (string, []any) {
	if len(sources) == 1 || within.sql == always.sql {
		return merged(sources, what, join("AND", []condition{in, within}), "")
	}
	text, args := merged(sources, what, in, " LIMIT -1")
	return "SELECT * FROM (" + text + ") WHERE " + within.sql, append(args, within.args...)
}

// boundary returns the key at which a window ends, nil if fewer rows are left.
func (w *walk) boundary(ctx context.Context) (*key, error) {
	text, args := w.arms(w.o.value()+" AS value, clock", w.from(), w.o.by("value", "clock"))
	rows, err := w.q.QueryContext(ctx, text+" LIMIT 1 OFFSET ?", append(args, w.window)...)
	if err != nil {
		return nil, fmt.Errorf("measure window: %w", err)
	}
	var end *key
	err = scan(rows, func() error {
		end = new(key)
		return rows.Scan(&end.value, &end.clock)
	})
	return end, wrap("measure window", err)
}

// read reads rows, up to the end of a window if there is one, until it has as many as are wanted and those that
// equal the last one. It reports whether it stopped before the end.
func (w *walk) read(ctx context.Context, want int, end *key) ([]row, bool, error) {
	in := []condition{w.from()}
	if end != nil {
		in = append(in, w.o.until(*end))
	}
	if w.check.sql != always.sql {
		check := w.check
		low, high, err := w.span(ctx, join("AND", in))
		if err != nil {
			return nil, false, err
		}
		check.args = check.bind(low, high)
		in = append(in, check)
	}
	text, args := w.arms("task, "+w.o.value()+" AS value, clock, micros", join("AND", in), w.o.by("value", "clock", "micros"))
	found, err := w.q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, false, fmt.Errorf("walk tasks: %w", err)
	}
	defer found.Close() //nolint:errcheck // Err tells
	var rows []row
	for found.Next() {
		var r row
		if err := found.Scan(&r.task, &r.value, &r.clock, &r.micros); err != nil {
			return nil, false, fmt.Errorf("walk tasks: %w", err)
		}
		if n := len(rows); n >= want && rows[n-1].key != r.key {
			w.at, w.inclusive, w.started = rows[n-1].key, false, true
			return rows, true, nil
		}
		if !w.repeats(rows, r) {
			rows = append(rows, r)
		}
	}
	if err := found.Err(); err != nil {
		return nil, false, fmt.Errorf("walk tasks: %w", err)
	}
	return rows, false, nil
}

// repeats reports whether another source has yielded the row.
func (w *walk) repeats(rows []row, r row) bool {
	for i := len(rows) - 1; len(w.sources) > 1 && i >= 0 && rows[i].key == r.key; i-- {
		if rows[i].task == r.task {
			return true
		}
	}
	return false
}

// span returns the range of rows in which texts are looked into. Rows are numbered about as they are sorted, but
// for some that were written long before their newest event: those before the range are all taken for matches.
func (w *walk) span(ctx context.Context, in condition) (low, high int64, err error) {
	if !w.check.texts() {
		return 0, 0, nil
	}
	text, args := w.arms("task", in, "")
	low, high = 0, math.MaxInt64
	for _, end := range []struct {
		at *int64
		by string
	}{{&low, " ORDER BY task LIMIT 1 OFFSET ?"}, {&high, " ORDER BY task DESC LIMIT 1 OFFSET ?"}} {
		skip := 0
		if end.at == &low {
			skip = w.window / 50
		}
		found, err := list[int64](ctx, w.q, "SELECT task FROM ("+text+")"+end.by, append(slices.Clone(args), skip)...)
		if err != nil {
			return 0, 0, fmt.Errorf("measure window: %w", err)
		}
		if len(found) > 0 {
			*end.at = found[0]
		}
	}
	return low, high, nil
}
