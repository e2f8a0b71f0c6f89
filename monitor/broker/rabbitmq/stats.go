package rabbitmq

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	maxQueues    = 500
	maxDeclares  = 8 // channels that declare queues passively at once
	statsTimeout = 5 * time.Second
	// managementTimeout leaves time to ask otherwise.
	managementTimeout = 3 * time.Second
)

// QueueStats implements broker.ControlConn. It reports at most 500 queues, those asked for first, within 5 s.
func (c *controlConn) QueueStats(ctx context.Context, names []string) (broker.QueueStats, error) {
	if err := c.check(ctx); err != nil {
		return broker.QueueStats{}, err
	}
	limited, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	s := broker.QueueStats{At: time.Now(), Source: "passive declare", Broker: c.managementStats()}
	names = bounded(names, &s.Broker)
	listed, all := c.listed(limited, &s)
	var unknown []string
	for _, name := range names {
		q, ok := listed[name]
		switch {
		case ok && q.Ready != nil:
			s.Queues = append(s.Queues, q)
		case !ok && all:
			s.Queues = append(s.Queues, broker.Queue{Name: name, Missing: true})
		default: // it is too new for statistics, or there is no list
			unknown = append(unknown, name)
		}
	}
	for _, q := range c.declared(limited, unknown) {
		if known, ok := listed[q.Name]; ok && q.Error == "" && !q.Missing {
			known.Ready, known.Consumers = q.Ready, q.Consumers
			q = known
		}
		s.Queues = append(s.Queues, q)
	}
	for _, name := range names {
		delete(listed, name)
	}
	s.Queues = append(s.Queues, others(listed, maxQueues-len(s.Queues), &s.Broker)...)
	return s, c.check(ctx)
}

// listed returns the queues that the management API reports, if there is one, and whether these are all. It adds to s
// what else the API reports.
func (c *controlConn) listed(ctx context.Context, s *broker.QueueStats) (byName map[string]broker.Queue, all bool) {
	if c.management == nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, managementTimeout)
	defer cancel()
	list, all, err := c.management.queues(ctx)
	if err != nil {
		s.Broker.Warnings = append(s.Broker.Warnings,
			fmt.Sprintf("The management API at %s cannot be used: %v.", c.management.base, err))
		return nil, false
	}
	s.Source = "management API"
	byName = make(map[string]broker.Queue, len(list))
	for _, q := range list {
		byName[q.Name] = q
	}
	c.management.broker(ctx, &s.Broker)
	return byName, all
}

// QueueObjects implements broker.QueueObjecter.
func (c *controlConn) QueueObjects(ctx context.Context, names []string) ([]json.RawMessage, error) {
	if c.management == nil {
		return nil, broker.ErrUnsupported
	}
	ctx, cancel := context.WithTimeout(ctx, managementTimeout)
	defer cancel()
	var all []json.RawMessage
	if err := c.management.get(ctx, "queues/"+url.PathEscape(c.endpoint.vhost), nil, &all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(queue json.RawMessage) bool {
		var o object
		return json.Unmarshal(queue, &o) != nil || !slices.Contains(names, o.text("name"))
	}), nil
}

// managementStats reports what the broker sent about itself at login.
func (c *controlConn) managementStats() broker.Info {
	text := func(name string) string {
		s, _ := c.reading.Properties[name].(string)
		return s
	}
	info := broker.Info{Kind: cmp.Or(text("product"), "RabbitMQ"), Version: text("version")}
	if why := c.blocked.Load(); why != nil {
		info.Warnings = append(info.Warnings, fmt.Sprintf("RabbitMQ takes no messages for now: %s.", *why))
	}
	return info
}

// bounded returns each name once, at most maxQueues of them.
func bounded(names []string, info *broker.Info) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	if more := len(names) - maxQueues; more > 0 {
		info.Warnings = append(info.Warnings,
			fmt.Sprintf("%d queues are too many to look at: %d are left out.", len(names), more))
		names = names[:maxQueues]
	}
	return names
}

// others returns at most limit queues by name, mailboxes and reply queues of workers last.
func others(listed map[string]broker.Queue, limit int, info *broker.Info) []broker.Queue {
	mailbox := func(q broker.Queue) int {
		if strings.HasSuffix(q.Name, ".pidbox") {
			return 1
		}
		return 0
	}
	list := make([]broker.Queue, 0, len(listed))
	for _, q := range listed {
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b broker.Queue) int {
		return cmp.Or(cmp.Compare(mailbox(a), mailbox(b)), cmp.Compare(a.Name, b.Name))
	})
	if len(list) > limit {
		if mailbox(list[limit]) == 0 {
			info.Warnings = append(info.Warnings, fmt.Sprintf(
				"The vhost has more than %d queues: those of workers and events and some others are shown.", maxQueues))
		}
		list = list[:limit]
	}
	return list
}

// declared asks for queues by declaring them passively. Those that ctx leaves no time for have an Error.
func (c *controlConn) declared(ctx context.Context, names []string) []broker.Queue {
	todo, done := make(chan string, len(names)), make(chan broker.Queue, len(names))
	for _, name := range names {
		todo <- name
	}
	close(todo)
	for range min(maxDeclares, len(names)) {
		_ = c.start(func() { c.declareAll(ctx, todo, done) }) // once the connection has ended, the wait below ends too
	}
	queues := make([]broker.Queue, 0, len(names))
	for range names {
		select {
		case q := <-done:
			queues = append(queues, q)
			continue
		case <-ctx.Done():
		case <-c.ended:
		}
		break
	}
	for _, name := range names {
		if !slices.ContainsFunc(queues, func(q broker.Queue) bool { return q.Name == name }) {
			queues = append(queues, broker.Queue{Name: name, Error: "RabbitMQ did not answer in time"})
		}
	}
	slices.SortFunc(queues, func(a, b broker.Queue) int { return cmp.Compare(a.Name, b.Name) })
	return queues
}

// declareAll declares queues passively until there are no more, one channel after the other: the broker closes
// the channel if a queue does not exist.
func (c *controlConn) declareAll(ctx context.Context, todo <-chan string, done chan<- broker.Queue) {
	var ch *amqp091.Channel
	defer func() {
		if ch != nil {
			_ = ch.Close()
		}
	}()
	for name := range todo {
		if ctx.Err() != nil {
			return
		}
		if len(name) > maxNameBytes {
			done <- broker.Queue{Name: name, Missing: true}
			continue
		}
		if ch == nil || ch.IsClosed() {
			var err error
			if ch, err = c.reading.Channel(); err != nil {
				ch = nil
				done <- broker.Queue{Name: name, Error: err.Error()}
				continue
			}
		}
		state, err := ch.QueueDeclarePassive(name, false, false, false, false, nil)
		done <- c.declaredQueue(name, state, err)
	}
}

// declaredQueue converts the reply to a passive declaration.
func (c *controlConn) declaredQueue(name string, state amqp091.Queue, err error) broker.Queue {
	if err == nil {
		ready, consumers := int64(state.Messages), int64(state.Consumers)
		return broker.Queue{Name: name, Ready: &ready, Consumers: &consumers}
	}
	refusal, ok := errors.AsType[*amqp091.Error](err)
	switch {
	case !ok:
		return broker.Queue{Name: name, Error: err.Error()}
	case refusal.Code == amqp091.NotFound:
		return broker.Queue{Name: name, Missing: true}
	case refusal.Code == amqp091.ResourceLocked:
		return broker.Queue{Name: name, Error: "it belongs to one connection alone"}
	case refusal.Code == amqp091.AccessRefused:
		return broker.Queue{Name: name, Error: fmt.Sprintf("user %q needs a permission on it", c.endpoint.user)}
	}
	return broker.Queue{Name: name, Error: reason(refusal)}
}

// Purge implements broker.ControlConn.
func (c *controlConn) Purge(ctx context.Context, queue string) (int64, error) {
	n, err := await(ctx, c, func() (int64, error) {
		ch, err := c.reading.Channel()
		if err != nil {
			return 0, fmt.Errorf("open channel: %w", err)
		}
		defer func() { _ = ch.Close() }()
		n, err := ch.QueuePurge(queue, false)
		return int64(n), err
	})
	if err == nil {
		return n, nil
	}
	step := fmt.Sprintf("purge queue %q", queue)
	refusal, ok := errors.AsType[*amqp091.Error](err)
	switch {
	case !ok || errors.Is(err, broker.ErrClosed):
		return 0, fmt.Errorf("%s: %w", step, err)
	case c.reading.IsClosed():
		return 0, fmt.Errorf("%s: %w: %w", step, broker.ErrClosed, err)
	case refusal.Code == amqp091.NotFound:
		return 0, fmt.Errorf("%s: %w", step, broker.ErrNoQueue)
	case refusal.Code == amqp091.AccessRefused:
		return 0, fmt.Errorf("%s: %w: user %q needs read permission on it", step, broker.ErrRefused, c.endpoint.user)
	case refusal.Code == amqp091.ResourceLocked:
		return 0, fmt.Errorf("%s: %w: it belongs to one connection alone", step, broker.ErrRefused)
	}
	return 0, fmt.Errorf("%s: %s", step, reason(refusal))
}
