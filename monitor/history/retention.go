package history

import (
	"context"
	"time"
)

// Retention removes what is older than its rules allow. Active tasks, which are unfinished and not lost, are never removed.
type Retention interface {
	// RetentionRules returns the rules.
	RetentionRules() RetentionRules
	// ReferenceTime is the time that Run measures ages against: now, but never later than the receipt of the newest
	// event plus the time measured since then. So a wall clock that is set forward by mistake removes nothing.
	ReferenceTime(ctx context.Context) (time.Time, error)
	// PlanPrune returns what Prune would remove.
	PlanPrune(ctx context.Context, now time.Time) (PrunePlan, error)
	// Prune removes what the rules say, in short transactions, until nothing is left to remove. It calls done after
	// each of them.
	Prune(ctx context.Context, now time.Time, done func(Pruned)) error
}

// RetentionRules say how long to keep what. Ages are measured from the receipt of the newest event by the clock of
// Umbel's host, so that wrong clocks of workers shorten nothing. 0 keeps forever.
type RetentionRules struct {
	Succeeded time.Duration // tasks that succeeded
	Failed    time.Duration // tasks that failed, were revoked or rejected
	Lost      time.Duration // unfinished tasks, since they were marked as lost or dismissed
	Events    time.Duration // events of finished tasks that no execution shows
	Workers   time.Duration // offline workers, since their last event; the monitor removes them
	Commands  time.Duration // commands in a final state; the audit log is never removed
	MaxSize   int64         // bytes on disk except active tasks; beyond it, the oldest finished and lost tasks are removed
}

// PrunePlan is what Prune would remove.
type PrunePlan struct {
	Succeeded, Failed Count // tasks that are too old
	Lost              Count // unfinished tasks that have been lost for too long
	Events            Count // tasks old enough to lose events
	Size              Count // further tasks to get below MaxSize, estimated
	Bytes             int64 // estimated size of all these on disk

	Tasks       int       // retained now
	Oldest      time.Time // last receipt of the finished task that was updated longest ago, zero if there is none
	Active      Count     // tasks that the rules never remove
	ActiveBytes int64     // estimated size of those, 0 if MaxSize is not reached
	UsedBytes   int64     // bytes in use; the file is larger until free pages are returned to the file system
}

// Pruned is what one transaction has removed.
type Pruned struct {
	Tasks  []string // ids of tasks
	Events int      // tasks that lost events
	Bytes  int64    // returned to the file system
}
