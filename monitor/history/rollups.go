package history

import (
	"context"
	"time"
)

// RollupReader keeps what happened in every minute, and adds it up to longer spans, which it keeps for longer.
type RollupReader interface {
	// Rollups calls f with every cell that r selects, oldest first. f must not call the store.
	Rollups(ctx context.Context, r RollupRange, f func(Rollup) error) error
}

// Rollup is what happened in a minute, or in a longer span, to tasks of one name on one worker from one
// queue. A cell that names nothing says that someone was there to count. A store adds what it is given to
// what it has.
type Rollup struct {
	At                                   int64  // minutes since 1970 UTC, of the start
	Name, Worker, Queue                  string // empty if unknown
	Received, Succeeded, Failed, Retried int64  // events
	Wait, Run                            []byte // µs (rollup.Histogram), empty if there were none
}

// RollupRange selects cells. Empty lists select all; others those with one of these names, or without any.
type RollupRange struct {
	From, To               time.Time     // From ≤ start of the span < To
	Span                   time.Duration // one of MinuteSpans
	Names, Workers, Queues []string
	Histograms             bool // Wait and Run are wanted
}

// RollupSpan is a length of time that is counted as one, and how long its cells are kept.
type RollupSpan struct{ Length, Retention time.Duration }

// RollupSpans returns the spans, shortest first. Each is a multiple of the one before.
func RollupSpans() [4]RollupSpan {
	const day = 24 * time.Hour
	return [4]RollupSpan{
		{time.Minute, 2 * day}, {10 * time.Minute, 8 * day}, {time.Hour, 35 * day}, {day, 400 * day},
	}
}
