package history

import (
	"context"
	"time"
)

// OutboxSamples keeps how full the outboxes of applications were, by minute.
type OutboxSamples interface {
	// SaveOutboxSample replaces the sample of its outbox and minute. It removes what is older than
	// OutboxSampleRetention.
	SaveOutboxSample(ctx context.Context, s OutboxSample) error
	// OutboxSamples returns the samples of an outbox within [from, to), oldest first, the highest values of each step,
	// which is a multiple of a minute.
	OutboxSamples(ctx context.Context, outbox string, from, to time.Time, step time.Duration) ([]OutboxSample, error)
}

// OutboxSampleRetention is how long samples are kept.
const OutboxSampleRetention = 8 * 24 * time.Hour

// OutboxSample is how full the outbox of an application was in one minute: the highest values seen.
type OutboxSample struct {
	Outbox      string
	Minute      int64         // since 1970 UTC, of the start
	Ready       int64         // rows that the relay may take
	OldestReady time.Duration // age of the oldest of them
	DeadLetters int64
}
