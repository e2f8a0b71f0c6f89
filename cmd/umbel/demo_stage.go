package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/simulate"
)

// stage plays a story on a broker inside the process.
type stage struct {
	broker   *inproc.Broker
	story    *simulate.Cluster
	declared chan string // queues that somebody must look after
}

// maxDeclared is how many queues may be added to a story before run looks after them.
const maxDeclared = 1_000

func newStage(o simulate.Options) (*stage, error) {
	s := &stage{declared: make(chan string, maxDeclared)}
	s.broker = inproc.New(inproc.Options{Queues: func(ctx context.Context) []broker.Queue { return s.story.Queues(ctx) }})
	o.Declared = func(queue string) {
		s.broker.Declare(queue)
		select {
		case s.declared <- queue:
		default: // nothing takes what is published there
		}
	}
	var err error
	s.story, err = simulate.New(o)
	return s, err
}

// run plays the story until ctx ends.
func (s *stage) run(ctx context.Context) error {
	for _, name := range s.story.Workers() {
		defer s.broker.Listen(func(m broker.Publishing) { s.story.Request(name, m, s.broker.Reply) })()
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := s.story.Run(ctx, s.broker.Publish); err != nil && ctx.Err() == nil {
			return fmt.Errorf("play the simulated cluster: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		for {
			select {
			case queue := <-s.declared:
				g.Go(func() error { return s.carry(ctx, queue) })
			case <-ctx.Done():
				return nil
			}
		}
	})
	return g.Wait()
}

// carry takes what others publish to a queue into the story.
func (s *stage) carry(ctx context.Context, queue string) error {
	c := s.broker.Consume(queue)
	defer c.Close()
	for {
		m, err := c.Take(ctx)
		if err != nil {
			return nil //nolint:nilerr // ctx has ended
		}
		s.story.Deliver(ctx, queue, m)
		if err := c.Done(); err != nil {
			return err
		}
	}
}
