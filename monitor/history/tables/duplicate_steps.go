package tables

import (
	"context"
	"database/sql"
	"time"
)

const (
	stepDuration = 20 * time.Millisecond // target for a transaction
	stepInterval = time.Second           // between looks for work
	maxStep      = 2_000                 // rows in one transaction
)

// CallStep is what is yet to be grouped by call: the tasks with a name, after number Done up to Last. An empty name stands for those
// that were stored before calls were.
type CallStep struct {
	Name       string
	Done, Last int64
}

// GroupCalls has tasks grouped that nothing has grouped yet, or to which a new rule applies, until ctx ends, at most half of the
// time. f groups up to n tasks after s.Done, and moves that on.
func GroupCalls(ctx context.Context, e Engine, f func(t Tx, s *CallStep, n int) error) error {
	n := maxStep / 20
	return Repeat(ctx, func() time.Duration {
		begin := time.Now()
		more, err := groupSome(ctx, e, n, f)
		took := time.Since(begin)
		switch {
		case err != nil && ctx.Err() == nil:
			e.Log().WarnContext(ctx, "grouping of duplicates failed", "error", err)
			return 10 * stepInterval
		case !more:
			return stepInterval
		default:
			n = max(min(n*int(stepDuration)/int(max(took, 1)), 2*n, maxStep), 1)
			return min(took, stepInterval)
		}
	})
}

// groupSome looks at up to n tasks and reports whether there are more.
func groupSome(ctx context.Context, e Engine, n int, f func(t Tx, s *CallStep, n int) error) (more bool, err error) {
	if s, err := nextStep(ctx, e.Reader()); s == nil || err != nil {
		return false, err
	}
	return true, e.UpdateTasks(ctx, func(t Tx) error {
		s, err := nextStep(t.Context(), t) // a rule may have been saved meanwhile
		if s == nil || err != nil {
			return err
		}
		if err := f(t, s, n); err != nil {
			return err
		}
		if s.Done >= s.Last {
			return t.Exec(`DELETE FROM duplicate_steps WHERE name = ?`, s.Name)
		}
		return t.Exec(`UPDATE duplicate_steps SET done = ? WHERE name = ?`, s.Done, s.Name)
	})
}

// nextStep returns nil if there is none.
func nextStep(ctx context.Context, r Reader) (s *CallStep, err error) {
	err = EachRow(ctx, r, `SELECT name, done, last FROM duplicate_steps ORDER BY name LIMIT 1`, nil, func(rows *sql.Rows) error {
		s = new(CallStep)
		return rows.Scan(&s.Name, &s.Done, &s.Last)
	})
	return s, err
}

// Repeat calls f again and again until ctx ends, each time after as long as f returned.
func Repeat(ctx context.Context, f func() (wait time.Duration)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		timer.Reset(f())
	}
}
