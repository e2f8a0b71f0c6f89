package web

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/deploys"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/fingerprint"
)

// maxMarks is how many marks a chart shows.
const maxMarks = 60

// marks returns the marks of a span of time for a chart, none if they cannot be read.
func (p *common) marks(ctx context.Context, from, to time.Time) []deploys.Mark {
	list, err := deploys.Read(ctx, p.backend.History(), p.backend.View, from, to, maxMarks)
	if err != nil {
		p.log.WarnContext(ctx, "marks not read", "error", err)
	}
	return list
}

// precedents returns what came before groups of failures were first seen, nothing if that cannot be read.
func (p *common) precedents(ctx context.Context, groups ...history.FailureGroup) map[fingerprint.ID][]deploys.Mark {
	found, err := deploys.OfFailures(ctx, p.backend.History(), p.backend.View, groups, p.now())
	if err != nil {
		p.log.WarnContext(ctx, "marks of failures not read", "error", err)
	}
	return found
}
