package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

const (
	replyTimeout = 5 * time.Second // for all replies to a command
	maxReply     = 2_000           // characters kept of a reply
)

// Send implements relay.Sender.
func (s *Service) Send(ctx context.Context, c history.Command) (relay.Sent, error) {
	if !c.ExpiresAt.IsZero() && !s.now().Before(c.ExpiresAt) {
		return relay.Sent{}, fmt.Errorf("%w: expired", relay.ErrPermanent)
	}
	switch c.Kind {
	case kindControl:
		var p controlPayload
		if err := decode(c, &p); err != nil {
			return relay.Sent{}, err
		}
		return s.sendControl(ctx, p)
	case kindTask:
		var p taskPayload
		if err := decode(c, &p); err != nil {
			return relay.Sent{}, err
		}
		if p.Redacted {
			return relay.Sent{}, fmt.Errorf("%w: its arguments were redacted", relay.ErrPermanent)
		}
		return relay.Sent{Payload: Redacted(s.redactor, c.Kind, c.Payload)}, s.publish(ctx, p)
	case kindPurge:
		var p purgePayload
		if err := decode(c, &p); err != nil {
			return relay.Sent{}, err
		}
		return s.purge(ctx, p)
	case RequeueDeadLetters, PurgeDeadLetters:
		return s.changeLetters(ctx, c)
	case KindNotification:
		var p notificationPayload
		if err := decode(c, &p); err != nil {
			return relay.Sent{}, err
		}
		return s.notify(ctx, p)
	case KindRelease:
		var p releasePayload
		if err := decode(c, &p); err != nil {
			return relay.Sent{}, err
		}
		return s.release(ctx, p)
	case kindDrain, kindUndrain:
		var p drainPayload
		if err := decode(c, &p); err != nil {
			return relay.Sent{}, err
		}
		mu, _ := s.draining.LoadOrStore(p.Worker, new(sync.Mutex))
		mu.(*sync.Mutex).Lock()         //nolint:forcetypeassert // it holds nothing else
		defer mu.(*sync.Mutex).Unlock() //nolint:forcetypeassert // likewise
		if c.Kind == kindUndrain {
			return s.undrain(ctx, p)
		}
		return s.drain(ctx, c, p)
	}
	return relay.Sent{}, fmt.Errorf("%w: no command is of kind %q", relay.ErrPermanent, c.Kind)
}

// publish sends a task message and then its task-sent event, as Celery's clients do with task_send_sent_event.
func (s *Service) publish(ctx context.Context, p taskPayload) error {
	message, now := p.message(), s.now()
	m, err := message.Publishing(now)
	if err != nil {
		return fmt.Errorf("%w: %w", relay.ErrPermanent, err)
	}
	err = s.Client.Publish(ctx, p.Queue, m)
	switch {
	case errors.Is(err, broker.ErrNoQueue) && len(s.Inspector.PeekTopology().Queues[p.Queue]) > 0:
		return fmt.Errorf("a worker is to consume from it, and has not declared it yet: %w", err)
	case err != nil:
		return failure(err)
	}
	event, err := message.SentEvent(m, p.Queue, s.clock.Add(1), now, s.eventSerializer())
	if err == nil {
		err = s.Client.PublishEvent(ctx, celery.SentRoutingKey, event)
	}
	if err != nil { // the message was sent and must not be sent again
		s.log.WarnContext(ctx, "event of a published task not sent", "task", p.ID, "error", err)
	}
	return nil
}

// decode decodes a payload.
func decode(c history.Command, to any) error {
	if c.Schema != history.CommandSchema {
		return fmt.Errorf("%w: its schema is %d, not %d", relay.ErrPermanent, c.Schema, history.CommandSchema)
	}
	if err := json.Unmarshal(c.Payload, to); err != nil {
		return fmt.Errorf("%w: read payload: %w", relay.ErrPermanent, err)
	}
	return nil
}

// failure classifies an error of the control connection for the relay.
func failure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, broker.ErrNoQueue), errors.Is(err, broker.ErrRefused), errors.Is(err, broker.ErrUnsupported):
		return fmt.Errorf("%w: %w", relay.ErrPermanent, err)
	default: // all others mean that the broker is unavailable
		return fmt.Errorf("%w: %w", relay.ErrUnavailable, err)
	}
}

// purge empties a queue. Its reply is how many messages that were.
func (s *Service) purge(ctx context.Context, p purgePayload) (relay.Sent, error) {
	n, err := s.Client.Purge(ctx, p.Queue)
	if err != nil {
		return relay.Sent{}, failure(err)
	}
	answer := history.Reply{Node: "broker", At: s.now(), OK: true, Text: count(int(n), "message removed", "messages removed")}
	return relay.Sent{Replies: func(_ context.Context, report func([]history.Reply)) bool {
		report([]history.Reply{answer})
		return true
	}}, nil
}

// sendControl calls a method of workers.
func (s *Service) sendControl(ctx context.Context, p controlPayload) (relay.Sent, error) {
	m, ok := remote.Lookup(p.Method)
	if !ok {
		return relay.Sent{}, fmt.Errorf("%w: there is no method %q", relay.ErrPermanent, p.Method)
	}
	args, err := m.Check(p.Arguments)
	if err != nil {
		return relay.Sent{}, fmt.Errorf("%w: %w", relay.ErrPermanent, err)
	}
	q := remote.Request{Method: p.Method, Arguments: args, Destination: p.Destination, Timeout: replyTimeout}
	if len(p.Destination) == 0 {
		q.Expect = s.alive()
	}
	conversation, err := s.Client.Send(ctx, q)
	if err != nil {
		return relay.Sent{}, failure(err)
	}
	if m.NoReply {
		over, end := context.WithCancel(ctx)
		end()
		conversation.Wait(over)
		return relay.Sent{}, nil
	}
	return relay.Sent{
		Expected: slices.Concat(p.Destination, q.Expect),
		Replies: func(ctx context.Context, report func([]history.Reply)) bool {
			answers := conversation.WaitEach(ctx, func(replies []remote.Reply) {
				list := make([]history.Reply, len(replies))
				for i := range replies {
					list[i] = historyReply(s.redactor, replies[i])
					if list[i].OK && !m.Inspect {
						s.Inspector.Acknowledged(replies[i].Node, m.Name, args)
					}
				}
				report(list)
			})
			return len(answers.Items) > 0 && len(answers.Missing) == 0 && answers.Unnamed == 0
		},
	}, nil
}

// alive returns the names of the online workers, which should reply.
func (s *Service) alive() []string {
	known := s.workers()
	return slices.DeleteFunc(names(known), func(name string) bool { return known[name].Status != state.Online })
}

// historyReply returns a reply as the outbox stores it.
func historyReply(x *redact.Redactor, r remote.Reply) history.Reply {
	a := history.Reply{Node: r.Node, At: r.At, Clock: r.Clock, OK: r.Error == "" && r.Undecodable == ""}
	switch {
	case r.Undecodable != "":
		a.Text = "Undecodable reply: " + r.Undecodable
	case r.Error != "":
		a.Text = r.Error
	case r.OK != "":
		a.Text = r.OK
	default:
		a.Text = string(r.Value)
	}
	if r.Duplicate {
		a.Text += " (another worker of this name has also replied)"
	}
	a.Text = truncate.Chars(x.Text(a.Text), maxReply)
	return a
}
