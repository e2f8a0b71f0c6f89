package sqlite

import (
	"context"
	"fmt"

	"github.com/umbelhq/umbel/monitor/history"
)

// count counts the tasks that match, up to the limit.
func (s *search) count(ctx context.Context) (history.Count, error) {
	if s.exact {
		c, ok, err := s.total(ctx, s.r.Limit+1)
		if err != nil || ok {
			return history.Count{N: min(c.N, s.r.Limit), Exact: c.Exact && c.N <= s.r.Limit}, err
		}
	}
	n, unfolded := 0, 0
	for {
		rows, more, err := s.next(ctx, min(s.r.Limit+1-n, 1000))
		if err != nil {
			return history.Count{}, err
		}
		matching, err := s.matching(ctx, rows)
		if err != nil {
			return history.Count{}, err
		}
		n += matching
		if !s.exact {
			unfolded += len(rows)
		}
		_, looked := s.place()
		switch {
		case n > s.r.Limit:
			return history.Count{N: s.r.Limit}, nil
		case !more:
			return history.Count{N: n, Exact: true}, nil
		case unfolded >= s.limits.unfold || looked >= s.most:
			return history.Count{N: n}, nil
		}
	}
}

// matching returns how many of the rows match.
func (s *search) matching(ctx context.Context, rows []row) (int, error) {
	if s.exact && s.rest().sql == always.sql {
		return len(rows), nil
	}
	if !s.exact {
		batch, err := s.load(ctx, rows)
		n := 0
		for i := range batch {
			if s.r.Query.Match(&batch[i].task, s.r.Now) {
				n++
			}
		}
		return n, err
	}
	tasks := make([]int64, len(rows))
	for i, r := range rows {
		tasks[i] = r.task
	}
	found, err := list[int](ctx, s.q, "SELECT count(*) FROM tasks WHERE task IN (SELECT value FROM json_each(?)) AND ("+s.rest().sql+")",
		append([]any{numbers(tasks)}, s.rest().args...)...)
	if err != nil {
		return 0, fmt.Errorf("count tasks: %w", err)
	}
	return found[0], nil
}

// countMerged counts the rows that sources find, up to most.
func countMerged(ctx context.Context, q queryer, sources []source, within condition, most int) (history.Count, error) {
	text, args := mergedWithin(sources, "task", always, within)
	if len(sources) > 1 { // they may overlap
		text = "SELECT DISTINCT task FROM (" + text + ")"
	}
	found, err := list[int](ctx, q, "SELECT count(*) FROM ("+text+" LIMIT ?)", append(args, most)...)
	if err != nil {
		return history.Count{}, fmt.Errorf("count tasks: %w", err)
	}
	return history.Count{N: found[0], Exact: true}, nil
}
