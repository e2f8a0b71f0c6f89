package sqlite

import (
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// lostAt is when a task was concluded to be lost, or dismissed, nil if it was not.
func lostAt(v *state.Task) any {
	switch {
	case v.Lost != nil:
		return v.Lost.At
	case v.Dismissed != nil:
		return v.Dismissed.At
	default:
		return nil
	}
}

// marks says what is special about a task.
func marks(v *state.Task) int64 {
	var m int64
	if v.Redelivered {
		m |= markRedelivered
	}
	if v.Truncated {
		m |= markTruncated
	}
	if len(formerNames(v)) > 0 {
		m |= markRenamed
	}
	if query.Marked(v, query.IsRetried) {
		m |= markRetried
	}
	if v.Lost != nil {
		m |= markLost
	}
	if v.Orphaned {
		m |= markOrphaned
	}
	if v.Dismissed != nil {
		m |= markDismissed
	}
	return m
}
