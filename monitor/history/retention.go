package history

import (
	"context"
	"time"
)

// Retention removes what is older than its rules. Active tasks, which are unfinished and not lost, are never removed.
type Retention interface {
	// RetentionRules returns the rules in force.
	RetentionRules() RetentionRules
	// ReferenceTime is the moment that Run measures ages against: now by the wall clock, but never further beyond
	// the receipt of the newest event than for how long that has been the newest. So a clock that is set forward by
	// mistake removes nothing.
	ReferenceTime(ctx context.Context) (time.Time, error)
	// PlanPrune says what the rules would remove now.
	PlanPrune(ctx context.Context, now time.Time) (PrunePlan, error)
	// Prune removes what the rules say, a little in each transaction, until nothing is left to remove. It
	// calls done after each of them.
	Prune(ctx context.Context, now time.Time, done func(Pruned)) error
}

// RetentionRules say how long to keep what, from the receipt of the newest event by the clock of Umbel's own host, which the
// clocks of workers cannot shorten. 0 is for ever.
type RetentionRules struct {
	Succeeded time.Duration // tasks that succeeded
	Failed    time.Duration // tasks that failed, were revoked or rejected
	Lost      time.Duration // unfinished tasks since they were concluded to be lost, or dismissed
	Events    time.Duration // events of finished tasks beyond those that make their executions
	Workers   time.Duration // workers that are offline, from their last sign of life; the monitor forgets them
	Commands  time.Duration // commands of which nothing more will happen; the audit log stays
	MaxSize   int64         // bytes on disk without those of active tasks; over it, the oldest finished and lost tasks go
}

// PrunePlan is what retention would remove.
type PrunePlan struct {
	Succeeded, Failed Count // tasks that are too old
	Lost              Count // unfinished ones that have been lost for too long
	Events            Count // tasks that are old enough to lose events
	Size              Count // tasks beyond those, to get below MaxSize, by estimate
	Bytes             int64 // about how much they take on disk

	Tasks       int       // that are kept now, in all
	Oldest      time.Time // when the finished task was heard of that was silent longest, zero if there is none
	Active      Count     // tasks that the rules never remove
	ActiveBytes int64     // bytes that those take, about, 0 where MaxSize is not reached
	UsedBytes   int64     // bytes in use on disk: less than the size of the file while some wait to be given back
}

// Pruned is what one transaction has removed.
type Pruned struct {
	Tasks  []string // ids of tasks
	Events int      // tasks that lost events
	Bytes  int64    // given back to the file system
}
