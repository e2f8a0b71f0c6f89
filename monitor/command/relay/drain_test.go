package relay_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
)

func TestTheRelayFinishesWhatItHasBegun(t *testing.T) {
	t.Parallel()
	slow := func(ctx context.Context, _ history.Command, _ int) (relay.Sent, error) {
		select {
		case <-time.After(3 * time.Second):
			return relay.Sent{}, nil
		case <-ctx.Done():
			return relay.Sent{}, ctx.Err()
		}
	}
	play(t, slow, nil, func(s *scene) {
		s.run()
		ids := s.enqueue(pendingCommand("a", "a0"), pendingCommand("a", "a1"), pendingCommand("b", "b0"))
		s.pass(time.Second)
		begun := time.Now()
		s.stop()
		if took := time.Since(begun); took != 2*time.Second {
			s.Errorf("Run took %v to end, want the 2 s that the sends needed", took)
		}
		s.expect(ids[0], history.CommandDone)
		s.expect(ids[1], history.CommandPending)
		s.expect(ids[2], history.CommandDone)
		if c := s.command(ids[1]); c.Attempts+c.Deferrals != 0 {
			s.Errorf("what was not begun has %d attempts and %d deferrals", c.Attempts, c.Deferrals)
		}
	})
}

func TestTheRelayEndsWithinItsDrain(t *testing.T) {
	t.Parallel()
	hung := func(ctx context.Context, c history.Command, _ int) (relay.Sent, error) {
		if c.Summary == "answered" {
			return relay.Sent{Expected: []string{"w1", "w2"}, Replies: func(ctx context.Context, report func([]history.Reply)) bool {
				<-ctx.Done()
				report([]history.Reply{{Node: "w1", At: time.Now(), OK: true}})
				return false
			}}, nil
		}
		<-ctx.Done()
		return relay.Sent{}, ctx.Err()
	}
	play(t, hung, func(o *relay.Options) { o.DrainTimeout = 4 * time.Second }, func(s *scene) {
		s.run()
		ids := s.enqueue(pendingCommand("a", "a0"), pendingCommand("b", "answered"))
		s.pass(time.Second)
		begun := time.Now()
		s.stop()
		if took := time.Since(begun); took != 4*time.Second {
			s.Errorf("Run took %v to end, want 4 s", took)
		}
		if c := s.command(ids[0]); c.State != history.CommandPending || c.Attempts+c.Deferrals != 0 {
			s.Errorf("command that could not be sent is %s after %d attempts and %d deferrals", c.State, c.Attempts, c.Deferrals)
		}
		if c := s.command(ids[1]); c.State != history.CommandNoReply || len(c.Replies) != 1 {
			s.Errorf("command that was not answered by all is %s with %d answers", c.State, len(c.Replies))
		}
	})
}

var errFull = errors.New("the disk is full")

// brittle is a store that fails when it is told to.
type brittle struct {
	history.Outbox
	broken  atomic.Bool // nothing can be written
	unheard atomic.Bool // what is claimed is written, but nobody learns of it
	settled atomic.Int32
}

func (b *brittle) Claim(ctx context.Context, relay string, now time.Time, limit, each int) (history.Claimed, error) {
	if b.broken.Load() {
		return history.Claimed{}, errFull
	}
	c, err := b.Outbox.Claim(ctx, relay, now, limit, each)
	if b.unheard.Load() {
		return history.Claimed{}, errFull
	}
	return c, err
}

func (b *brittle) RecordOutcomes(ctx context.Context, relay string, now time.Time, outcomes []history.Outcome) error {
	b.settled.Add(1)
	if b.broken.Load() {
		return errFull
	}
	return b.Outbox.RecordOutcomes(ctx, relay, now, outcomes)
}

func (b *brittle) AddReplies(ctx context.Context, now time.Time, replies []history.CommandReplies) error {
	if b.broken.Load() {
		return errFull
	}
	return b.Outbox.AddReplies(ctx, now, replies)
}

func (b *brittle) Reclaim(ctx context.Context, relay string, now, before time.Time, held []int64) (history.Reclaimed, error) {
	if b.broken.Load() {
		return history.Reclaimed{}, errFull
	}
	return b.Outbox.Reclaim(ctx, relay, now, before, held)
}

// onBrittle has the relay use a store that can fail.
func onBrittle(o *relay.Options) { o.Store = &brittle{Outbox: o.Store} }

func TestAStoreThatFailsNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	slow := func(context.Context, history.Command, int) (relay.Sent, error) {
		<-time.After(time.Second)
		return relay.Sent{Replies: func(_ context.Context, report func([]history.Reply)) bool {
			report([]history.Reply{{Node: "w1", At: time.Now(), OK: true}})
			return true
		}}, nil
	}
	play(t, slow, onBrittle, func(s *scene) {
		b := s.store.(*brittle)
		s.run()
		ids := s.enqueue(several("a", 3)...)
		s.pass(500 * time.Millisecond)
		b.broken.Store(true)
		s.pass(2 * time.Minute) // longer than a claim takes to become stale
		if diff := cmp.Diff([]string{"a0", "a1", "a2"}, s.order()); diff != "" {
			s.Errorf("sent while the disk was full (-want +got):\n%s", diff)
		}
		b.broken.Store(false)
		s.pass(time.Minute)
		for _, id := range ids {
			s.expect(id, history.CommandDone)
			if c := s.command(id); len(c.Replies) != 1 {
				s.Errorf("command %d has %d answers, want 1", id, len(c.Replies))
			}
		}
		if diff := cmp.Diff([]string{"a0", "a1", "a2"}, s.order()); diff != "" {
			s.Errorf("sent in all (-want +got):\n%s", diff)
		}
	})
}

func TestTheRelayEndsWhenItCannotRecord(t *testing.T) {
	t.Parallel()
	play(t, willing, onBrittle, func(s *scene) {
		b := s.store.(*brittle)
		s.run()
		s.pass(time.Second)
		ids := s.enqueue(pendingCommand("a", "a0"))
		b.unheard.Store(true)
		s.pass(time.Second)
		s.expect(ids[0], history.CommandInFlight) // claimed, and nobody knows
		b.unheard.Store(false)
		s.pass(time.Second)
		ids = append(ids, s.enqueue(pendingCommand("b", "b0"))...)
		s.pass(0)
		b.broken.Store(true)
		ids = append(ids, s.enqueue(pendingCommand("b", "b1"))...)
		begun := time.Now()
		s.stop()
		if took := time.Since(begun); took > 5*time.Second {
			s.Errorf("Run took %v to end, want 5 s at most", took)
		}
		s.expect(ids[0], history.CommandInFlight)
		s.expect(ids[1], history.CommandDone)
		s.expect(ids[2], history.CommandPending)
	})
}

func TestAClaimThatNobodyLearnedOfIsReclaimed(t *testing.T) {
	t.Parallel()
	play(t, willing, onBrittle, func(s *scene) {
		b := s.store.(*brittle)
		s.run()
		s.pass(time.Second)
		b.unheard.Store(true)
		ids := s.enqueue(pendingCommand("a", "a0"))
		s.pass(time.Second)
		b.unheard.Store(false)
		s.pass(3 * time.Minute)
		s.expect(ids[0], history.CommandDone)
	})
}

func TestRepliesAreRecorded(t *testing.T) {
	t.Parallel()
	asked := func(_ context.Context, c history.Command, _ int) (relay.Sent, error) {
		return relay.Sent{Expected: []string{"w1", "w2"}, Replies: func(_ context.Context, report func([]history.Reply)) bool {
			<-time.After(2 * time.Second)
			report([]history.Reply{{Node: "w1", At: time.Now(), Text: "ok", OK: true, Clock: 7}})
			<-time.After(2 * time.Second)
			if c.Summary == "all" {
				report([]history.Reply{{Node: "w2", At: time.Now(), Text: "no such queue"}})
			}
			return c.Summary == "all"
		}}, nil
	}
	play(t, asked, nil, func(s *scene) {
		s.run()
		ids := s.enqueue(pendingCommand("a", "all"), pendingCommand("a", "some"))
		s.pass(time.Second)
		for _, id := range ids { // the second was not held back by the answers to the first
			c := s.command(id)
			if diff := cmp.Diff([]string{"w1", "w2"}, c.Expected); diff != "" || c.State != history.CommandSent || c.SentAt.IsZero() {
				s.Errorf("command is %s, sent %v, expects (-want +got):\n%s", c.State, c.SentAt, diff)
			}
		}
		s.pass(time.Second)
		first := []history.Reply{{Node: "w1", At: time.Now(), Text: "ok", OK: true, Clock: 7}}
		for _, id := range ids { // answers are told as they come in
			c := s.command(id)
			if diff := cmp.Diff(first, c.Replies); diff != "" || c.State != history.CommandSent {
				s.Errorf("command is %s, with (-want +got):\n%s", c.State, diff)
			}
		}
		s.pass(2 * time.Second)
		all, some := s.command(ids[0]), s.command(ids[1])
		if all.State != history.CommandDone || len(all.Replies) != 2 || !all.DoneAt.Equal(time.Now()) {
			s.Errorf("command that all answered is %+v", all)
		}
		if diff := cmp.Diff(first, some.Replies); diff != "" || some.State != history.CommandNoReply {
			s.Errorf("command that one answered is %s, with (-want +got):\n%s", some.State, diff)
		}
	})
}

func TestWaitEndsWithTheLastCommandOrTheContext(t *testing.T) {
	t.Parallel()
	slow := func(_ context.Context, c history.Command, _ int) (relay.Sent, error) {
		<-time.After(time.Second)
		return relay.Sent{}, nil
	}
	play(t, slow, nil, func(s *scene) {
		s.run()
		ids := s.enqueue(several("a", 3)...)
		states := func(timeout time.Duration) []history.CommandState {
			ctx, cancel := context.WithTimeout(s.Context(), timeout)
			defer cancel()
			commands, err := s.relay.Wait(ctx, ids)
			if err != nil {
				s.Fatalf("wait: %v", err)
			}
			var states []history.CommandState
			for _, c := range commands {
				states = append(states, c.State)
			}
			return states
		}
		want := []history.CommandState{history.CommandDone, history.CommandInFlight, history.CommandInFlight}
		if diff := cmp.Diff(want, states(1500*time.Millisecond)); diff != "" {
			s.Errorf("states when the time was over (-want +got):\n%s", diff)
		}
		done := history.CommandDone
		if diff := cmp.Diff([]history.CommandState{done, done, done}, states(time.Hour)); diff != "" {
			s.Errorf("states when all were done (-want +got):\n%s", diff)
		}
		if took := time.Since(s.begun); took != 3*time.Second {
			s.Errorf("it took %v, want 3 s", took)
		}
		if _, err := s.relay.Wait(s.Context(), []int64{4711}); !errors.Is(err, history.ErrNotFound) {
			s.Errorf("waiting for no command: error %v, want %v", err, history.ErrNotFound)
		}
		if none, err := s.relay.Wait(s.Context(), nil); len(none) > 0 || err != nil {
			s.Errorf("waiting for nothing = %v, %v", none, err)
		}
	})
}

func TestChangedIsClosedByEveryChange(t *testing.T) {
	t.Parallel()
	slow := func(context.Context, history.Command, int) (relay.Sent, error) {
		<-time.After(time.Second)
		return relay.Sent{}, nil
	}
	play(t, slow, nil, func(s *scene) {
		s.run()
		s.pass(100 * time.Millisecond)
		var seen []history.CommandState
		changed := s.relay.Changed()
		ids := s.enqueue(pendingCommand("a", "a0"))
		for len(seen) == 0 || !seen[len(seen)-1].Final() {
			<-changed
			changed = s.relay.Changed()
			seen = append(seen, s.command(ids[0]).State)
		}
		for _, want := range []history.CommandState{history.CommandInFlight, history.CommandDone} {
			if !slices.Contains(seen, want) {
				s.Errorf("states seen when told are %v, want %s among them", seen, want)
			}
		}
		s.pass(time.Second) // the relay counts what it has sent, before or after that is recorded
		changed = s.relay.Changed()
		select {
		case <-changed:
			s.Error("a change is told when nothing has changed")
		case <-time.After(time.Minute):
		}
	})
}
