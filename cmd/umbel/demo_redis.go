package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/simulate"
)

const (
	// shopQueue is where the shop's tasks without a queue of their own go: real workers consume from celery.
	shopQueue = "shop"
	// look is how often the shop's workers look for tasks of others.
	look = 100 * time.Millisecond

	// As Kombu names them in database 0.
	eventChannel   = "/0.celeryev/"
	pidboxChannel  = "/0.celery.pidbox"
	replyBinding   = "_kombu.binding.reply.celery.pidbox"
	kombuSeparator = "\x06\x16"
)

// redisStage plays a story on a Redis inside the process, which others can reach too.
type redisStage struct {
	server *miniredis.Miniredis
	story  *simulate.Cluster
	log    *slog.Logger

	mu     sync.Mutex
	queues []string // that workers of the story consume from
}

// onRedis serves a Redis at c.RedisListen and the dashboard that watches it, with the story on it.
func (c *demoCmd) onRedis(ctx context.Context, story simulate.Options, o dashboard.Options, log *slog.Logger) error {
	if err := loopback(c.RedisListen); err != nil && !c.Unauthenticated {
		return usageError{fmt.Errorf("--redis-listen %s: anybody who reaches it may do anything with it: "+
			"use a loopback address, or add --unauthenticated", c.RedisListen)}
	}
	s := &redisStage{server: miniredis.NewMiniRedis(), log: log}
	story.DefaultQueue = shopQueue
	story.Declared = func(queue string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.queues = append(s.queues, queue)
	}
	var err error
	if s.story, err = simulate.New(story); err != nil {
		return usageError{err}
	}
	door, err := openDoor(ctx, c.RedisListen, s.server, log)
	if err != nil {
		return fmt.Errorf("--redis-listen %s: %w", c.RedisListen, err)
	}
	defer s.server.Close()
	broker := url.URL{Scheme: "redis", Host: door.listener.Addr().String(), Path: "/0"}
	o.BrokerURL = broker.String()
	log.Info("broker ready", "url", o.BrokerURL, "join", "celery -A yourapp -b "+o.BrokerURL+" worker -E")
	return c.serve(ctx, o, log, door.run, s.run)
}

// run plays the story until ctx ends, once somebody listens to events: Redis keeps none.
func (s *redisStage) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, name := range s.story.Workers() {
		mailbox := s.server.NewSubscriber()
		mailbox.Subscribe(pidboxChannel)
		g.Go(func() error {
			defer mailbox.Close()
			return s.hear(ctx, name, mailbox)
		})
	}
	g.Go(func() error { return s.attend(ctx) })
	g.Go(func() error {
		if !s.audience(ctx) {
			return nil
		}
		if err := s.story.Run(ctx, s.publish); err != nil && ctx.Err() == nil {
			return fmt.Errorf("play the simulated cluster: %w", err)
		}
		return nil
	})
	return g.Wait()
}

// audience waits until somebody has subscribed to events. It is false if ctx ends first.
func (s *redisStage) audience(ctx context.Context) bool {
	t := time.NewTicker(look)
	defer t.Stop()
	for s.server.PubSubNumPat() == 0 {
		select {
		case <-t.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// publish is a story's worker that sends an event.
func (s *redisStage) publish(_ context.Context, m broker.Message) error {
	b, err := envelope(broker.Publishing{ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, Body: m.Body},
		"celeryev", m.RoutingKey)
	if err == nil {
		s.server.Publish(eventChannel+m.RoutingKey, string(b))
	}
	return err
}

func envelope(m broker.Publishing, exchange, routingKey string) ([]byte, error) {
	return celery.Envelope{
		Publishing: m, Exchange: exchange, RoutingKey: routingKey, DeliveryTag: rand.Text(),
	}.Append(nil)
}

// hear passes commands on to a worker.
func (s *redisStage) hear(ctx context.Context, worker string, mailbox *miniredis.Subscriber) error {
	for {
		select {
		case m := <-mailbox.Messages():
			e, err := celery.ParseEnvelope([]byte(m.Message))
			if err != nil {
				s.log.Debug("command not understood", "error", err)
				continue
			}
			s.story.Request(worker, e.Publishing, s.answer)
		case <-ctx.Done():
			return nil
		}
	}
}

// answer pushes a reply to the queues that are bound for it.
func (s *redisStage) answer(to broker.ReplyTo, m broker.Publishing) {
	members, _ := s.server.SMembers(replyBinding) // none: nobody waits any more
	for _, member := range members {
		parts := strings.Split(member, kombuSeparator)
		if len(parts) != 3 || parts[0] != to.RoutingKey {
			continue
		}
		if b, err := envelope(m, to.Exchange, to.RoutingKey); err == nil {
			_, _ = s.server.Lpush(parts[2], string(b)) // the key is a list
		}
	}
}

// attend takes what others publish to the shop's queues into the story, and lets the time of the server go on.
func (s *redisStage) attend(ctx context.Context) error {
	t := time.NewTicker(look)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.server.FastForward(look)
			s.take(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *redisStage) take(ctx context.Context) {
	s.mu.Lock()
	queues := s.queues
	s.mu.Unlock()
	for _, queue := range queues {
		for {
			text, err := s.server.RPop(queue)
			if err != nil {
				break // empty
			}
			e, err := celery.ParseEnvelope([]byte(text))
			if err != nil {
				s.log.Warn("message thrown away", "queue", queue, "error", err)
				continue
			}
			s.story.Deliver(ctx, queue, e.Publishing)
		}
	}
}
