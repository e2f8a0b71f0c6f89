package store

import (
	"context"
	"time"
)

// Failures groups failed tasks by name and fingerprint of the exception.
type Failures interface {
	// Failures returns the groups whose newest failure is at or after since, newest first, at most limit.
	Failures(ctx context.Context, since time.Time, limit int) ([]Failure, error)
	// Failure returns one group, ErrMissing if there is none.
	Failure(ctx context.Context, id string) (Failure, error)
	// Resolve marks a group as resolved at the time, or reopens it if at is zero. A failure after it reopens
	// it by itself. ErrMissing if there is none.
	Resolve(ctx context.Context, id string, at time.Time) error
}

// Failure is a group of failed tasks.
type Failure struct {
	ID          string // stable across restarts
	Name        string // of the task
	Fingerprint string // what the exceptions have in common, in words
	Example     string // the newest exception
	TaskID      string // of the newest
	Count       Count
	First, Last time.Time
	Trend       []int64   // failures per equal part of the last 24 hours, oldest first
	ResolvedAt  time.Time // zero if it is open
}
