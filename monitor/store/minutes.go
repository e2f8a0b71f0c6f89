package store

import (
	"context"
	"time"
)

// Counters keeps what happened by minute.
type Counters interface {
	// Minutes calls f with every cell of the minutes from ≤ minute < to that filter selects, oldest first.
	Minutes(ctx context.Context, from, to time.Time, filter MinuteFilter, f func(Minute) error) error
}

// Minute is what happened in one minute to tasks of one name on one worker from one queue.
type Minute struct {
	At                                   int64 // minutes since 1970 UTC
	Name, Worker, Queue                  string
	Received, Succeeded, Failed, Retried int64
	Wait, Run                            []byte // histograms of µs, empty if there were none
}

// MinuteFilter selects cells. Empty fields select all.
type MinuteFilter struct{ Names, Workers, Queues []string }
