package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outbox"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state"
)

const (
	answerTime = 5 * time.Second // for all answers to a command
	maxAnswer  = 2_000           // characters of one that are kept
)

// Send implements outbox.Sender.
func (d *Desk) Send(ctx context.Context, c history.Command) (outbox.Sent, error) {
	if !c.ExpiresAt.IsZero() && !d.now().Before(c.ExpiresAt) {
		return outbox.Sent{}, fmt.Errorf("%w: expired", outbox.ErrPermanent)
	}
	switch c.Kind {
	case kindControl:
		var p controlPayload
		if err := decode(c, &p); err != nil {
			return outbox.Sent{}, err
		}
		return d.sendControl(ctx, p)
	case kindTask:
		var p taskPayload
		if err := decode(c, &p); err != nil {
			return outbox.Sent{}, err
		}
		return outbox.Sent{}, d.publish(ctx, p)
	case kindPurge:
		var p purgePayload
		if err := decode(c, &p); err != nil {
			return outbox.Sent{}, err
		}
		return d.purge(ctx, p)
	}
	return outbox.Sent{}, fmt.Errorf("%w: no command is of kind %q", outbox.ErrPermanent, c.Kind)
}

// publish sends a task message, and then the event of it, as Celery's clients do with task_send_sent_event.
func (d *Desk) publish(ctx context.Context, p taskPayload) error {
	message, now := p.message(), d.now()
	m, err := message.Publishing(now)
	if err != nil {
		return fmt.Errorf("%w: %w", outbox.ErrPermanent, err)
	}
	err = d.client.Publish(ctx, p.Queue, m)
	switch {
	case errors.Is(err, broker.ErrNoQueue) && len(d.inspector.PeekTopology().Queues[p.Queue]) > 0:
		return fmt.Errorf("a worker is to consume from it, and has not declared it yet: %w", err)
	case err != nil:
		return failure(err)
	}
	event, err := message.Sent(m, p.Queue, d.clock.Add(1), now)
	if err == nil {
		err = d.client.PublishEvent(ctx, celery.SentKey, event)
	}
	if err != nil { // the message has gone out, and is not to go twice
		d.log.WarnContext(ctx, "event of a published task not sent", "task", p.ID, "error", err)
	}
	return nil
}

// decode reads a payload.
func decode(c history.Command, to any) error {
	if c.Schema != history.CommandSchema {
		return fmt.Errorf("%w: its schema is %d, not %d", outbox.ErrPermanent, c.Schema, history.CommandSchema)
	}
	if err := json.Unmarshal(c.Payload, to); err != nil {
		return fmt.Errorf("%w: read payload: %w", outbox.ErrPermanent, err)
	}
	return nil
}

// failure tells the relay what to do about an error of the line.
func failure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, broker.ErrNoQueue), errors.Is(err, broker.ErrRefused), errors.Is(err, broker.ErrUnsupported):
		return fmt.Errorf("%w: %w", outbox.ErrPermanent, err)
	default: // the line says of all others that the broker cannot be used for now
		return fmt.Errorf("%w: %w", outbox.ErrUnavailable, err)
	}
}

// purge empties a queue. What it says is how many messages that were.
func (d *Desk) purge(ctx context.Context, p purgePayload) (outbox.Sent, error) {
	n, err := d.client.Purge(ctx, p.Queue)
	if err != nil {
		return outbox.Sent{}, failure(err)
	}
	answer := history.Reply{Node: "broker", At: d.now(), OK: true, Text: count(int(n), "message removed", "messages removed")}
	return outbox.Sent{Answers: func(_ context.Context, tell func([]history.Reply)) bool {
		tell([]history.Reply{answer})
		return true
	}}, nil
}

// sendControl asks workers.
func (d *Desk) sendControl(ctx context.Context, p controlPayload) (outbox.Sent, error) {
	m, ok := remote.Lookup(p.Method)
	if !ok {
		return outbox.Sent{}, fmt.Errorf("%w: there is no method %q", outbox.ErrPermanent, p.Method)
	}
	args, err := m.Check(p.Arguments)
	if err != nil {
		return outbox.Sent{}, fmt.Errorf("%w: %w", outbox.ErrPermanent, err)
	}
	q := remote.Request{Method: p.Method, Arguments: args, Destination: p.Destination, Timeout: answerTime}
	if len(p.Destination) == 0 {
		q.Expect = d.alive()
	}
	conversation, err := d.client.Send(ctx, q)
	if err != nil {
		return outbox.Sent{}, failure(err)
	}
	if m.NoReply {
		over, end := context.WithCancel(ctx)
		end()
		conversation.Wait(over)
		return outbox.Sent{}, nil
	}
	return outbox.Sent{
		Expected: slices.Concat(p.Destination, q.Expect),
		Answers: func(ctx context.Context, tell func([]history.Reply)) bool {
			answers := conversation.WaitEach(ctx, func(replies []remote.Reply) {
				list := make([]history.Reply, len(replies))
				for i := range replies {
					list[i] = answerOf(replies[i])
					if list[i].OK && !m.Inspect {
						d.inspector.Acknowledged(replies[i].Node, m.Name, args)
					}
				}
				tell(list)
			})
			return len(answers.Items) > 0 && len(answers.Missing) == 0 && answers.Unnamed == 0
		},
	}, nil
}

// alive returns the workers that should answer.
func (d *Desk) alive() []string {
	known := d.workers()
	return slices.DeleteFunc(names(known), func(name string) bool { return known[name].Status != state.Online })
}

// answerOf is a reply as the outbox keeps it.
func answerOf(r remote.Reply) history.Reply {
	a := history.Reply{Node: r.Node, At: r.At, Clock: r.Clock, OK: r.Error == "" && r.Undecodable == ""}
	switch {
	case r.Undecodable != "":
		a.Text = "It answered what cannot be decoded: " + r.Undecodable
	case r.Error != "":
		a.Text = r.Error
	case r.OK != "":
		a.Text = r.OK
	default:
		a.Text = string(r.Value)
	}
	if r.Duplicate {
		a.Text += " (another worker of this name has answered too)"
	}
	a.Text = clip(a.Text)
	return a
}

// clip cuts a long text, and makes it valid.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= maxAnswer {
		return s
	}
	return string([]rune(s)[:maxAnswer]) + "…"
}
