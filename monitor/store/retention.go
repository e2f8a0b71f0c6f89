package store

import (
	"context"
	"time"
)

// Retention removes what is older than its rules. Active tasks are never removed.
type Retention interface {
	// Prunable says what the rules would remove now.
	Prunable(ctx context.Context, now time.Time) (Plan, error)
}

// Rules say how long to keep what. 0 is for ever.
type Rules struct {
	Succeeded time.Duration // tasks that succeeded
	Failed    time.Duration // tasks that failed, were revoked or rejected
	Events    time.Duration // events of finished tasks beyond those that make their executions
	MaxSize   int64         // bytes on disk; over it, the oldest finished tasks go
}

// Plan is what retention would remove.
type Plan struct {
	Succeeded, Failed, Events Count // tasks; Events: tasks that lose events
	Size                      Count // tasks beyond those, to get below MaxSize
	Oldest                    time.Time
	Bytes                     int64 // about how much the file has free afterwards
}
