package deploys

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
)

// OfFailures returns what came before groups of failures were first seen, as Before does, by group. Failed tasks are kept as
// long as the rules say: whatever failed first within a day of that may have failed before.
func OfFailures(ctx context.Context, store Store, view func(f func(c state.View)), groups []history.FailureGroup, now time.Time) (map[fingerprint.ID][]Mark, error) {
	var from, to, known time.Time
	if keep := store.RetentionRules().Failed; keep > 0 {
		known = now.Add(maxBefore - keep)
	}
	for i := range groups {
		at := groups[i].FirstAt
		if at.Before(known) {
			continue
		}
		if from.IsZero() || at.Before(from) {
			from = at
		}
		if at.After(to) {
			to = at
		}
	}
	if from.IsZero() {
		return nil, nil
	}
	list, err := Read(ctx, store, view, from.Add(-maxBefore), to.Add(time.Microsecond), history.MaxMarks)
	if err != nil {
		return nil, err
	}
	found := make(map[fingerprint.ID][]Mark, len(groups))
	for i := range groups {
		if f := &groups[i]; !f.FirstAt.Before(known) {
			found[f.ID] = Before(list, f.FirstAt)
		}
	}
	return found, nil
}

// Store is where marks are, with the rules by which failed tasks are kept.
type Store interface {
	history.Marks
	RetentionRules() history.RetentionRules
}
