package history

import (
	"context"
	"time"
)

// Counters keeps what happened in every minute, and adds it up to longer spans, which it keeps for longer.
type Counters interface {
	// Minutes calls f with every cell that r selects, oldest first. f must not call the store.
	Minutes(ctx context.Context, r MinuteRange, f func(Minute) error) error
}

// Minute is what happened in a minute, or in a longer span, to tasks of one name on one worker from one
// queue. A cell that names nothing says that someone was there to count. A store adds what it is given to
// what it has.
type Minute struct {
	At                                   int64  // minutes since 1970 UTC, of the start
	Name, Worker, Queue                  string // empty if unknown
	Received, Succeeded, Failed, Retried int64  // events
	Wait, Run                            []byte // µs (rollup.Histogram), empty if there were none
}

// MinuteRange selects cells. Empty lists select all; others those with one of these names, or without any.
type MinuteRange struct {
	From, To               time.Time     // From ≤ start of the span < To
	Span                   time.Duration // one of MinuteSpans
	Names, Workers, Queues []string
	Histograms             bool // Wait and Run are wanted
}

// MinuteSpan is a length of time that is counted as one, and how long its cells are kept.
type MinuteSpan struct{ Length, Kept time.Duration }

// MinuteSpans returns the spans, shortest first. Each is a multiple of the one before.
func MinuteSpans() [4]MinuteSpan {
	const day = 24 * time.Hour
	return [4]MinuteSpan{
		{time.Minute, 2 * day}, {10 * time.Minute, 8 * day}, {time.Hour, 35 * day}, {day, 400 * day},
	}
}
