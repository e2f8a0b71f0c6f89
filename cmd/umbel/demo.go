package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/simulate"
)

// demoCmd shows a simulated cluster.
type demoCmd struct {
	webFlags
	Seed    uint64  `env:"UMBEL_SEED" default:"1" help:"Seed of the simulation."`
	Rate    float64 `env:"UMBEL_RATE" default:"20" help:"Tasks per second."`
	DataDir string  `env:"UMBEL_DEMO_DATA_DIR" default:":memory:" placeholder:"DIR" help:"Directory of the history."`
	History string  `env:"UMBEL_DEMO_HISTORY" placeholder:"URL" help:"Keep the history in PostgreSQL: postgres://user:password@host/database."`
	Nodes   int     `env:"UMBEL_DEMO_NODES" default:"1" help:"Run several Umbels that share the history, which must be in PostgreSQL, each a process of its own, on ports that follow each other. One of them leads; killed ones are started again. They show neither locks nor an outbox."`
}

// Run sends simulated events through the real pipeline until ctx ends.
func (c *demoCmd) Run(ctx context.Context, io streams, log *slog.Logger) error {
	if !(c.Rate > 0) || c.Rate > simulate.MaxRate {
		return usageError{fmt.Errorf("--rate %v is not within 0 to %d tasks a second", c.Rate, simulate.MaxRate)}
	}
	if c.Nodes < 1 || c.Nodes > maxDemoNodes {
		return usageError{fmt.Errorf("--nodes %d is not within 1 to %d", c.Nodes, maxDemoNodes)}
	}
	switch n, err := c.node(); {
	case err != nil:
		return err
	case n != nil:
		return c.runNode(ctx, n, io.in, log)
	case c.Nodes > 1:
		return c.runNodes(ctx, log)
	}
	return c.runAlone(ctx, log)
}

// runAlone shows the cluster from this process.
func (c *demoCmd) runAlone(ctx context.Context, log *slog.Logger) error {
	kept := locks.NewMemory(locks.DefaultPatterns(), time.Now)
	start, deploys := time.Now().Add(-backlog(c.Rate)), demoDeploys(backlog(c.Rate))
	simulated := c.simulated(start, deploys)
	simulated.Locks = kept
	s, err := newSimulation(simulated)
	if err != nil {
		return usageError{err}
	}
	outbox := simulate.NewOutbox(c.Seed, time.Now)
	send := func(ctx context.Context) error { return outbox.Run(ctx, s.cluster.Deliver) }
	o := dashboard.Options{
		DataDir: c.DataDir, History: c.History, Version: versionString(), Demo: true, Broker: s.broker, Locks: kept, OutboxSources: []outboxwatch.Source{outbox},
		Marks: demoMarks(start, deploys),
	}
	return c.serve(ctx, o, log, s.run, send)
}

// simulated says what is simulated.
func (c *demoCmd) simulated(start time.Time, d simulate.Deploys) simulate.Options {
	return simulate.Options{Seed: c.Seed, Rate: c.Rate, Start: start, Duplicates: true, Deploys: d, Hung: backlog(c.Rate) / 2}
}

// demoDeploys breaks a task a while before the demo is seen, and mends it a while after.
func demoDeploys(backlog time.Duration) simulate.Deploys {
	return simulate.Deploys{Broken: backlog * 3 / 5, Mended: backlog + 5*time.Minute}
}

// demoMarks are what a CI job would have told of the deploys.
func demoMarks(start time.Time, d simulate.Deploys) []history.Mark {
	return []history.Mark{
		{At: start.Add(d.Broken), Text: "v2.3.1", Service: "shop", Link: "https://shop.example.com/releases/2.3.1", By: "ci"},
		{At: start.Add(d.Mended), Text: "v2.3.2", Service: "shop", Link: "https://shop.example.com/releases/2.3.2", By: "ci"},
	}
}

// backlog is how long the cluster has been running when the demo starts: long enough for a worker to have been killed,
// short enough to be sent at once at any rate.
func backlog(rate float64) time.Duration {
	const tasks = 20_000
	return min(5*time.Minute, time.Duration(tasks/rate*float64(time.Second)))
}

// simulation is a simulated cluster on a broker inside the process.
type simulation struct {
	broker   *inproc.Broker
	cluster  *simulate.Cluster
	declared chan string // queues to consume from
}

// maxDeclared is how many queues may be declared before run consumes from them.
const maxDeclared = 1_000

func newSimulation(o simulate.Options) (*simulation, error) {
	s := &simulation{declared: make(chan string, maxDeclared)}
	s.broker = inproc.New(inproc.Options{Queues: func(ctx context.Context) []broker.Queue { return s.cluster.Queues(ctx) }})
	o.Declared = func(queue string) {
		s.broker.Declare(queue)
		select {
		case s.declared <- queue:
		default: // what is published there stays
		}
	}
	var err error
	s.cluster, err = simulate.New(o)
	return s, err
}

// run simulates until ctx ends.
func (s *simulation) run(ctx context.Context) error {
	for _, name := range s.cluster.Workers() {
		defer s.broker.Listen(func(m broker.Publishing) { s.cluster.Request(name, m, s.broker.Reply) })()
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := s.cluster.Run(ctx, s.broker.Publish); err != nil && ctx.Err() == nil {
			return fmt.Errorf("simulate: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		for {
			select {
			case queue := <-s.declared:
				g.Go(func() error { return s.consume(ctx, queue) })
			case <-ctx.Done():
				return nil
			}
		}
	})
	return g.Wait()
}

// consume delivers what others publish to a queue to the simulated workers.
func (s *simulation) consume(ctx context.Context, queue string) error {
	c := s.broker.Consume(queue)
	defer c.Close()
	for {
		m, err := c.Take(ctx)
		if err != nil {
			return nil //nolint:nilerr // ctx has ended
		}
		s.cluster.Deliver(ctx, queue, m)
		if err := c.Done(); err != nil {
			return err
		}
	}
}
