package dashboard

import (
	"context"
	"fmt"

	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/monitor/otlp"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state"
)

// exportSpans prepares to send spans, if there is a collector.
func (d *Dashboard) exportSpans(o Options, ingesting *ingest.Options) (err error) {
	if o.OTLPEndpoint == "" {
		return nil
	}
	d.spans, err = otlp.New(otlp.Options{
		Endpoint: o.OTLPEndpoint, Headers: o.OTLPHeaders, Logger: o.Logger,
		Task: func(ctx context.Context, id string) (state.Task, error) { return d.reader.Task(ctx, id) },
		Offsets: func() (offsets map[string]int64) {
			d.reader.View(func(c state.View) { offsets = workflow.Offsets(c.Workers()) })
			return offsets
		},
	})
	if err != nil {
		return fmt.Errorf("endpoint of OpenTelemetry: %w", err)
	}
	ingesting.Ended = func(task, worker string, micros int64) {
		d.spans.Ended(otlp.End{Task: task, Worker: worker, Micros: micros})
	}
	return nil
}

// spanStats returns what counts spans, nil if none are sent.
func (d *Dashboard) spanStats() func() otlp.Stats {
	if d.spans == nil {
		return nil
	}
	return d.spans.Stats
}
