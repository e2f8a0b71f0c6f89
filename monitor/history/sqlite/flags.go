package sqlite

import (
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// lostAt is when a task was marked as lost or dismissed, nil if it was not.
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

// flags returns the bits of the column flags.
func flags(v *state.Task) int64 {
	var m int64
	if v.Redelivered {
		m |= flagRedelivered
	}
	if v.Truncated {
		m |= flagTruncated
	}
	if len(formerNames(v)) > 0 {
		m |= flagRenamed
	}
	if query.Marked(v, query.IsRetried) {
		m |= flagRetried
	}
	if v.Lost != nil {
		m |= flagLost
	}
	if v.Orphaned {
		m |= flagOrphaned
	}
	if v.Dismissed != nil {
		m |= flagDismissed
	}
	return m
}
