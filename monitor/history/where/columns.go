package where

import (
	"slices"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Classes of tasks, as in the column final.
const (
	ClassActive = iota
	ClassSucceeded
	ClassFailed // revoked and rejected ones too
)

// Class returns the class of tasks in a state.
func Class(s state.State) int64 {
	switch {
	case !s.Final():
		return ClassActive
	case s == state.Success:
		return ClassSucceeded
	default:
		return ClassFailed
	}
}

// LostAt is when a task was marked as lost or dismissed, nil if it was not: the column lost.
func LostAt(v *state.Task) *int64 {
	switch {
	case v.Lost != nil:
		return &v.Lost.At
	case v.Dismissed != nil:
		return &v.Dismissed.At
	default:
		return nil
	}
}

// Bits of the column flags.
const (
	FlagRedelivered = 1 << iota
	FlagTruncated
	FlagRetried
	FlagRenamed
	FlagLost
	FlagOrphaned
	FlagDismissed

	AllFlags = 1<<iota - 1
)

// Flag returns the bit for a value of query.Is.
func Flag(value string) int64 {
	switch value {
	case query.IsRedelivered:
		return FlagRedelivered
	case query.IsTruncated:
		return FlagTruncated
	case query.IsRetried:
		return FlagRetried
	case query.IsLost:
		return FlagLost
	case query.IsOrphaned:
		return FlagOrphaned
	case query.IsDismissed:
		return FlagDismissed
	default:
		return 0
	}
}

// Flags returns the bits of the column flags.
func Flags(v *state.Task) int64 {
	var m int64
	if v.Redelivered {
		m |= FlagRedelivered
	}
	if v.Truncated {
		m |= FlagTruncated
	}
	if len(FormerNames(v)) > 0 {
		m |= FlagRenamed
	}
	if query.Marked(v, query.IsRetried) {
		m |= FlagRetried
	}
	if v.Lost != nil {
		m |= FlagLost
	}
	if v.Orphaned {
		m |= FlagOrphaned
	}
	if v.Dismissed != nil {
		m |= FlagDismissed
	}
	return m
}

// FormerNames returns the names of a task's executions other than its own: Task.replace replaces it by a task of another name.
func FormerNames(v *state.Task) (names []string) {
	for i := range v.Executions {
		if n := v.Executions[i].Name; n != nil && (v.Name == nil || *n != *v.Name) && !slices.Contains(names, *n) {
			names = append(names, *n)
		}
	}
	return names
}
