package sqlite

import (
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

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
	return m
}
