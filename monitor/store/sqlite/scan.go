package sqlite

import (
	"context"
	"fmt"
)

// scanStep is how many rows a scan yields at least, since the next ones take another scan.
const scanStep = 1_000

// scanned yields the first rows, in the order of stamps, that sources find in indexes of another order.
type scanned struct {
	q       queryer
	o       order
	sources []source
	within  condition // that indexes check
	check   condition

	started   bool
	inclusive bool // rows with the clock of at have not been yielded
	at        key
	looked    int
}

func (s *scanned) place() (key, int) { return s.at, s.looked }
func (s *scanned) rest() condition   { return s.check }

func (s *scanned) next(ctx context.Context, want int) ([]row, bool, error) {
	for limit := max(want, scanStep); ; limit *= 4 {
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
		s.looked += len(rows)
		return unique(rows), more, nil
	}
}

func (s *scanned) read(ctx context.Context, limit int) ([]row, error) {
	where := s.within
	if s.started {
		from := condition{"clock" + s.o.than(s.inclusive) + "?", []any{s.at.clock}, true}
		where = join("AND", []condition{from, where})
	}
	text, args := merged(s.sources, "task, 0 AS value, clock", where, s.o.by("value", "clock"))
	found, err := s.q.QueryContext(ctx, text+" LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("scan tasks: %w", err)
	}
	var rows []row
	err = scan(found, func() error {
		var r row
		err := found.Scan(&r.task, &r.value, &r.clock)
		rows = append(rows, r)
		return err
	})
	return rows, wrap("scan tasks", err)
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
