package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/umbelhq/umbel/monitor/history"
)

// scanned yields the first rows, in the order of stamps, that sources find in indexes of another order.
type scanned struct {
	q       queryer
	o       order
	sources []source
	within  condition // that indexes check
	check   condition
	size    int // rows of the sources
	most    int // rows to check for a count
	step    int // rows to yield at least, since the next ones take another scan

	started   bool
	inclusive bool // rows with the clock of at have not been yielded
	at        key
	looked    int
}

func (s *scanned) place() (key, int) { return s.at, s.looked }
func (s *scanned) rest() condition   { return s.check }

// total looks at no more rows than one page may, since each is somewhere else.
func (s *scanned) total(ctx context.Context, most int) (history.Count, bool, error) {
	if s.check.sql == always.sql {
		c, err := countMerged(ctx, s.q, s.sources, s.within, most)
		return c, true, err
	}
	what := "task, coalesce((" + s.check.sql + "), 0) AS matches"
	sources := slices.Clone(s.sources)
	for i := range sources { // the arguments of the check come first
		sources[i].args = slices.Concat(s.check.args, sources[i].args)
	}
	text, args := mergedWithin(sources, what, always, s.within)
	rows, err := s.q.QueryContext(ctx, "SELECT count(*), coalesce(sum(matches), 0) FROM (SELECT DISTINCT task, matches FROM ("+text+") LIMIT ?)",
		append(args, s.most)...)
	if err != nil {
		return history.Count{}, false, fmt.Errorf("count tasks: %w", err)
	}
	var c history.Count
	err = scan(rows, func() error {
		var looked int
		err := rows.Scan(&looked, &c.N)
		c.Exact = looked < s.most
		return err
	})
	return c, true, wrap("count tasks", err)
}

func (s *scanned) next(ctx context.Context, want int) ([]row, bool, error) {
	step := s.step
	if s.check.sql != always.sql {
		step *= 4
	}
	for limit := max(want, step); ; limit *= 4 {
		rows, err := s.read(ctx, limit+1)
		if err != nil {
			return nil, false, err
		}
		more := len(rows) > limit
		if more { // the last clock may have more rows
			n := limit
			for n > 0 && rows[n-1].clock == rows[limit].clock {
				n--
			}
			if rows = rows[:n]; n == 0 {
				continue
			}
		}
		if len(rows) > 0 {
			s.at, s.inclusive, s.started = s.o.last(rows[len(rows)-1].key), false, true
		}
		s.looked += len(rows) + s.size/10 // an index is quicker to look at
		return unique(rows), more, nil
	}
}

func (s *scanned) read(ctx context.Context, limit int) ([]row, error) {
	var in []condition
	if s.started {
		in = append(in, condition{"clock" + s.o.than(s.inclusive) + "?", []any{s.at.clock}, true})
	}
	last, found, err := s.sample(ctx, join("AND", in), limit)
	if err != nil {
		return nil, err
	}
	if found {
		in = append(in, s.o.until(last))
	}
	text, args := mergedWithin(s.sources, "task, 0 AS value, clock", join("AND", in), s.within)
	text += s.o.by("value", "clock")
	selected, err := s.q.QueryContext(ctx, text+" LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("scan tasks: %w", err)
	}
	var rows []row
	err = scan(selected, func() error {
		var r row
		err := selected.Scan(&r.task, &r.value, &r.clock)
		rows = append(rows, r)
		return err
	})
	return rows, wrap("scan tasks", err)
}

// sample returns a key that so many rows do not come after, false if it finds none. Times rise with clocks, so that those
// at one end of a range tell about where the first ones are, and SQLite need not sort most of the others.
func (s *scanned) sample(ctx context.Context, where condition, n int) (k key, found bool, err error) {
	first := s.sources[0]
	if first.column == "" || s.within.sql != always.sql {
		return key{}, false, nil
	}
	extreme, direction := "max", " ASC"
	if s.o.descending {
		extreme, direction = "min", " DESC"
	}
	text, args := merged([]source{first}, "clock", where, " ORDER BY "+first.column+direction+" LIMIT ?")
	rows, err := s.q.QueryContext(ctx, "SELECT "+extreme+"(clock), count(*) FROM ("+text+")", append(args, n)...)
	if err != nil {
		return key{}, false, fmt.Errorf("sample range: %w", err)
	}
	err = scan(rows, func() error {
		var end sql.NullInt64
		var sampled int
		err := rows.Scan(&end, &sampled)
		k.clock, found = end.Int64, sampled == n
		return err
	})
	return k, found, wrap("sample range", err)
}

// unique returns rows without those that more than one source found.
func unique(rows []row) []row {
	seen := make(map[int64]bool, len(rows))
	left := rows[:0]
	for _, r := range rows {
		if !seen[r.task] {
			seen[r.task] = true
			left = append(left, r)
		}
	}
	return left
}
