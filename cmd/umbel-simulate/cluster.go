package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
)

const (
	// defaultQueue takes the simulated tasks without a queue of their own: real workers consume from celery.
	defaultQueue = "shop"
	// pollInterval is how often the queues are polled for tasks that others publish.
	pollInterval = 100 * time.Millisecond

	// As Kombu names them in database 0.
	eventChannel   = "/0.celeryev/"
	pidboxChannel  = "/0.celery.pidbox"
	replyBinding   = "_kombu.binding.reply.celery.pidbox"
	kombuSeparator = "\x06\x16"
)

// cluster is a simulated cluster on a Redis inside the process.
type cluster struct {
	server    *miniredis.Miniredis
	simulated *simulate.Cluster
	log       *slog.Logger

	mu     sync.Mutex
	queues []string // that simulated workers consume from
}

// newCluster listens at address and simulates nothing yet.
func newCluster(address string, o simulate.Options, log *slog.Logger) (*cluster, error) {
	c := &cluster{server: miniredis.NewMiniRedis(), log: log}
	o.DefaultQueue = defaultQueue
	o.Declared = func(queue string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.queues = append(c.queues, queue)
	}
	var err error
	if c.simulated, err = simulate.New(o); err != nil {
		return nil, err
	}
	return c, c.server.StartAddr(address)
}

// run simulates until ctx ends, once somebody has subscribed to events: Redis keeps none.
func (c *cluster) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, name := range c.simulated.Workers() {
		mailbox := c.server.NewSubscriber()
		mailbox.Subscribe(pidboxChannel)
		g.Go(func() error {
			defer mailbox.Close()
			return c.serveRequests(ctx, name, mailbox)
		})
	}
	g.Go(func() error { return c.poll(ctx) })
	g.Go(func() error {
		if !c.waitForSubscriber(ctx) {
			return nil
		}
		if err := c.simulated.Run(ctx, c.publish); err != nil && ctx.Err() == nil {
			return fmt.Errorf("simulate: %w", err)
		}
		return nil
	})
	return g.Wait()
}

// waitForSubscriber waits until somebody has subscribed to events. It returns false if ctx ends first.
func (c *cluster) waitForSubscriber(ctx context.Context) bool {
	t := time.NewTicker(pollInterval)
	defer t.Stop()
	for c.server.PubSubNumPat() == 0 {
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// publish sends an event.
func (c *cluster) publish(_ context.Context, m broker.Message) error {
	b, err := envelope(broker.Publishing{ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, Body: m.Body},
		"celeryev", m.RoutingKey)
	if err == nil {
		c.server.Publish(eventChannel+m.RoutingKey, string(b))
	}
	return err
}

func envelope(m broker.Publishing, exchange, routingKey string) ([]byte, error) {
	return celery.Envelope{
		Publishing: m, Exchange: exchange, RoutingKey: routingKey, DeliveryTag: rand.Text(),
	}.Append(nil)
}

// serveRequests passes remote control commands on to a worker.
func (c *cluster) serveRequests(ctx context.Context, worker string, mailbox *miniredis.Subscriber) error {
	for {
		select {
		case m := <-mailbox.Messages():
			e, err := celery.ParseEnvelope([]byte(m.Message))
			if err != nil {
				c.log.Debug("malformed remote control command", "error", err)
				continue
			}
			c.simulated.Request(worker, e.Publishing, c.reply)
		case <-ctx.Done():
			return nil
		}
	}
}

// reply pushes a reply to the queues that are bound for it.
func (c *cluster) reply(to broker.ReplyTo, m broker.Publishing) {
	members, _ := c.server.SMembers(replyBinding) // an error means that none is left
	for _, member := range members {
		parts := strings.Split(member, kombuSeparator)
		if len(parts) != 3 || parts[0] != to.RoutingKey {
			continue
		}
		if b, err := envelope(m, to.Exchange, to.RoutingKey); err == nil {
			_, _ = c.server.Lpush(parts[2], string(b)) // the key is a list
		}
	}
}

// poll consumes what others publish, and advances the clock of the server.
func (c *cluster) poll(ctx context.Context) error {
	t := time.NewTicker(pollInterval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			c.server.FastForward(pollInterval)
			c.consume(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *cluster) consume(ctx context.Context) {
	c.mu.Lock()
	queues := c.queues
	c.mu.Unlock()
	for _, queue := range queues {
		for {
			text, err := c.server.RPop(queue)
			if err != nil {
				break // empty
			}
			e, err := celery.ParseEnvelope([]byte(text))
			if err != nil {
				c.log.Warn("malformed message dropped", "queue", queue, "error", err)
				continue
			}
			c.simulated.Deliver(ctx, queue, e.Publishing)
		}
	}
}
