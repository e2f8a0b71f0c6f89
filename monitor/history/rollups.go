package history

import (
	"context"
	"time"
)

// RollupReader reads the event counts of each minute, and of the longer spans that they are added up to.
type RollupReader interface {
	// Rollups calls f with every rollup that r selects, oldest first. f must not call the store.
	Rollups(ctx context.Context, r RollupRange, f func(Rollup) error) error
}

// Rollup counts the events of one minute, or of a longer span, of tasks of one name on one worker from one queue. One
// without any name records that a monitor was running then. A store adds a rollup to the one it has.
type Rollup struct {
	At                                   int64  // minutes since 1970 UTC, of the start
	Name, Worker, Queue                  string // empty if unknown
	Received, Succeeded, Failed, Retried int64  // events
	Wait, Run                            []byte // µs (rollup.Histogram), empty if there were none

	Workers, Queues []string // those known of what a store has added up ByName
}

// RollupGrouping is what a reader tells rollups apart by, beside their times.
type RollupGrouping int

// The groupings. All but ByAll allow a store to add up rollups that differ in other fields only, and to leave these empty: so
// such a reader gets fewer rollups, or all, with equal sums.
const (
	ByAll RollupGrouping = iota
	ByTime
	ByName
	ByWorker
	ByQueue
)

// RollupRange selects rollups. An empty list selects all; others select rollups with one of these names, or with none.
type RollupRange struct {
	From, To               time.Time     // From ≤ start of the span < To
	Span                   time.Duration // one of MinuteSpans
	Names, Workers, Queues []string
	OmitCounts             bool // Received, Succeeded, Failed and Retried are not wanted
	Wait, Run              bool // are wanted
	By                     RollupGrouping
	Places                 bool // Workers and Queues are wanted
}

// RollupSpan is the length of time that a rollup covers, and how long such rollups are retained.
type RollupSpan struct{ Length, Retention time.Duration }

// RollupSpans returns the spans, shortest first. Each is a multiple of the one before.
func RollupSpans() [4]RollupSpan {
	const day = 24 * time.Hour
	return [4]RollupSpan{
		{time.Minute, 2 * day}, {10 * time.Minute, 8 * day}, {time.Hour, 35 * day}, {day, 400 * day},
	}
}
