package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/simulate"
)

// prologue is how much of the story has already happened when the demo starts: long enough for a worker
// to have died, short enough to be told at once at any rate.
func prologue(rate float64) time.Duration {
	const tasks = 20_000
	return min(5*time.Minute, time.Duration(tasks/rate*float64(time.Second)))
}

// demoCmd shows a simulated cluster.
type demoCmd struct {
	webFlags
	Seed    uint64  `env:"UMBEL_SEED" default:"1" help:"Seed of the simulation."`
	Rate    float64 `env:"UMBEL_RATE" default:"20" help:"Tasks per second."`
	DataDir string  `env:"UMBEL_DEMO_DATA_DIR" default:":memory:" placeholder:"DIR" help:"Directory of the history."`
}

// Run plays the story through the real pipeline until ctx ends.
func (c *demoCmd) Run(ctx context.Context, _ streams, log *slog.Logger) error {
	if !(c.Rate > 0) || c.Rate > simulate.MaxRate {
		return usageError{fmt.Errorf("--rate %v is not within 0 to %d tasks a second", c.Rate, simulate.MaxRate)}
	}
	story := simulate.Options{Seed: c.Seed, Rate: c.Rate, Start: time.Now().Add(-prologue(c.Rate))}
	o := dashboard.Options{DataDir: c.DataDir, Version: versionString()}
	stage, err := newStage(story)
	if err != nil {
		return usageError{err}
	}
	o.Broker = stage.broker
	return c.serve(ctx, o, log, stage.run)
}
