package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/internal/retry"
	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/history"
)

// sendGroup sends commands of one group in order, until one has to wait. No command begins after ctx has ended, none goes on
// after work has.
func (r *Relay) sendGroup(ctx, work context.Context, group []history.Command) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
	}
	for i := range group {
		if ctx.Err() != nil || r.paused() {
			r.putBack(group[i:])
			return
		}
		if !r.send(work, &group[i]) {
			r.putBack(group[i+1:])
			return
		}
	}
}

// putBack makes commands pending again as if they had not been claimed.
func (r *Relay) putBack(commands []history.Command) {
	outcomes := make([]history.Outcome, len(commands))
	for i := range commands {
		outcomes[i] = outcome(&commands[i], history.CommandPending)
	}
	r.records.addOutcomes(outcomes...)
}

// outcome returns the outcome of a command of which only the state changes.
func outcome(c *history.Command, s history.CommandState) history.Outcome {
	return history.Outcome{
		ID: c.ID, State: s, DueAt: c.DueAt, Attempts: c.Attempts, Deferrals: c.Deferrals, Error: c.LastError,
	}
}

// send sends a command, records the outcome, and reports whether the next in its group may be sent.
func (r *Relay) send(work context.Context, c *history.Command) bool {
	timeout := min(sendTimeout, r.held().left()) // then another relay may send it
	if timeout < minSend {
		r.putBack([]history.Command{*c})
		return false
	}
	if !c.ExpiresAt.IsZero() {
		left := c.ExpiresAt.Sub(r.o.Now())
		if left <= 0 {
			r.change(func(s *Status) { s.Expired++ })
			r.records.addOutcomes(outcome(c, history.CommandExpired))
			return true
		}
		timeout = min(timeout, left)
	}
	before := r.Status().Sent
	ctx, cancel := context.WithTimeout(work, timeout)
	sent, err := r.o.Sender.Send(ctx, *c)
	_, other := errors.AsType[elsewhere](err)
	late := errors.Is(ctx.Err(), context.DeadlineExceeded) && !other
	cancel()
	switch {
	case err == nil:
		r.delivered(work, c, sent)
		return true
	case isLater(err):
		r.goesOn(c, err)
	case work.Err() != nil: // interrupted
		r.putBack([]history.Command{*c})
	case errors.Is(err, ErrPermanent):
		return r.failed(c, err, c.Attempts+1, true)
	case errors.Is(err, ErrUnavailable):
		r.postpone(c, err)
	case late && r.Status().Sent == before: // the broker took nothing else either
		r.postpone(c, fmt.Errorf("the broker did not answer within %v", timeout))
	default:
		return r.failed(c, err, c.Attempts+1, c.Attempts+1 >= r.o.MaxRetries)
	}
	return false
}

func isLater(err error) bool {
	_, ok := errors.AsType[*LaterError](err)
	return ok
}

// goesOn records how far a command is, which is sent again later.
func (r *Relay) goesOn(c *history.Command, err error) {
	later, _ := errors.AsType[*LaterError](err)
	o := outcome(c, history.CommandPending)
	o.DueAt, o.Error, o.Payload = r.o.Now().Add(later.After), truncate.Text(later.Progress, maxError), later.Payload
	r.records.addOutcomes(o)
	r.reached(func(*Status) {})
}

// delivered records that the broker has a command, and starts waiting for replies.
func (r *Relay) delivered(work context.Context, c *history.Command, sent Sent) {
	done := outcome(c, history.CommandDone)
	done.Error, done.Expected, done.Payload, done.SentAt = "", sent.Expected, sent.Payload, r.o.Now()
	if sent.Replies != nil {
		done.State = history.CommandSent
	}
	r.records.addOutcomes(done)
	r.ended(!sent.Elsewhere, func(s *Status) {
		s.Sent++
		s.LastError = ""
	})
	if sent.Replies == nil {
		return
	}
	select {
	case r.waiting <- struct{}{}:
	case <-work.Done():
		r.records.addReplies(history.CommandReplies{ID: c.ID, State: history.CommandNoReply})
		return
	}
	r.replies.Go(func() {
		complete := sent.Replies(work, func(answers []history.Reply) {
			r.records.addReplies(history.CommandReplies{ID: c.ID, Replies: answers, State: history.CommandSent})
		})
		<-r.waiting
		reply := history.CommandReplies{ID: c.ID, State: history.CommandNoReply}
		if complete {
			reply.State = history.CommandDone
		}
		r.records.addReplies(reply)
	})
}

// failed records a failed attempt, as final or to be retried, and reports whether the next in its group may be sent.
func (r *Relay) failed(c *history.Command, err error, attempts int, dead bool) bool {
	o := outcome(c, history.CommandPending)
	o.Attempts, o.Error = attempts, truncate.Text(err.Error(), maxError)
	if dead {
		o.State = history.CommandDead
	} else {
		o.DueAt = r.o.Now().Add(retry.After(attempts, minBackoff, r.o.MaxBackoff))
	}
	r.records.addOutcomes(o)
	_, other := errors.AsType[elsewhere](err)
	r.ended(!other, func(s *Status) {
		s.LastError = o.Error
		if dead {
			s.DeadLettered++
		} else {
			s.Retried++
		}
	})
	if dead {
		r.o.Logger.Error("command became a dead letter", "command", c.ID, "kind", c.Kind, "attempts", attempts, "error", o.Error)
	} else {
		r.o.Logger.Warn("command failed", "command", c.ID, "kind", c.Kind, "attempts", attempts, "error", o.Error)
	}
	return dead
}

const (
	minSend    = time.Second // that a lease holds when a command is sent
	minBackoff = time.Second // before a failed command is retried
	maxError   = 500         // bytes kept of an error
)
