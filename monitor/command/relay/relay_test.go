package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
)

func TestGroupsAreSentInOrderAndBesideEachOther(t *testing.T) {
	t.Parallel()
	slow := func(context.Context, history.Command, int) (relay.Sent, error) {
		<-time.After(time.Second)
		return relay.Sent{}, nil
	}
	play(t, slow, nil, func(s *scene) {
		s.run()
		s.enqueue(slices.Concat(several("a", 3), several("b", 3))...)
		s.pass(10 * time.Second)
		want := []attempt{{"a0", 0}, {"a1", time.Second}, {"a2", 2 * time.Second}, {"b0", 0}, {"b1", time.Second}, {"b2", 2 * time.Second}}
		got := s.tried()
		slices.SortFunc(got, func(a, b attempt) int { return cmpText(a.Summary, b.Summary) })
		if diff := cmp.Diff(want, got); diff != "" {
			s.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}

func cmpText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestFewGroupsAreSentAtOnce(t *testing.T) {
	t.Parallel()
	slow := func(context.Context, history.Command, int) (relay.Sent, error) {
		<-time.After(time.Second)
		return relay.Sent{}, nil
	}
	play(t, slow, func(o *relay.Options) { o.Parallel = 2 }, func(s *scene) {
		s.run()
		s.enqueue(pendingCommand("a", "a"), pendingCommand("b", "b"), pendingCommand("c", "c"), pendingCommand("d", "d"), pendingCommand("e", "e"))
		s.pass(10 * time.Second)
		at := map[time.Duration]int{}
		for _, a := range s.tried() {
			at[a.At]++
		}
		if diff := cmp.Diff(map[time.Duration]int{0: 2, time.Second: 2, 2 * time.Second: 1}, at); diff != "" {
			s.Errorf("sends begun (-want +got):\n%s", diff)
		}
	})
}

func TestManyCommandsOfOneGroupDoNotKeepOthersWaiting(t *testing.T) {
	t.Parallel()
	slow := func(context.Context, history.Command, int) (relay.Sent, error) {
		<-time.After(time.Second)
		return relay.Sent{}, nil
	}
	play(t, slow, nil, func(s *scene) {
		s.run()
		s.enqueue(several("bulk", 1000)...)
		s.pass(1500 * time.Millisecond)
		s.enqueue(pendingCommand("other", "other"))
		s.pass(0)
		if got := s.tried(); got[len(got)-1].Summary != "other" {
			s.Errorf("last attempt is %+v, want the other group's", got[len(got)-1])
		}
	})
}

func TestFailuresBackOffAndHoldBackTheirGroup(t *testing.T) {
	t.Parallel()
	broker := func(_ context.Context, c history.Command, n int) (relay.Sent, error) {
		if c.Summary == "a0" && n <= 4 {
			return relay.Sent{}, errors.New("no")
		}
		return relay.Sent{}, nil
	}
	play(t, broker, func(o *relay.Options) {
		o.PollInterval, o.MaxBackoff = 250*time.Millisecond, 5*time.Second
	}, func(s *scene) {
		s.run()
		ids := s.enqueue(pendingCommand("a", "a0"), pendingCommand("a", "a1"), pendingCommand("b", "b0"))
		s.pass(10 * time.Millisecond)
		if c := s.command(ids[0]); c.State != history.CommandPending || c.Attempts != 1 || c.LastError != "no" || !c.SentAt.IsZero() {
			s.Errorf("command that failed is %+v", c)
		}
		if c := s.command(ids[1]); c.State != history.CommandPending || c.Attempts != 0 {
			s.Errorf("command behind one that failed is %s after %d attempts", c.State, c.Attempts)
		}
		s.expect(ids[2], history.CommandDone)
		s.pass(time.Minute)
		var attempts []time.Duration
		for _, a := range s.tried() {
			if a.Summary == "a0" {
				attempts = append(attempts, a.At)
			}
		}
		if len(attempts) != 5 {
			s.Fatalf("attempts at %v, want 5", attempts)
		}
		for n, most := range []time.Duration{2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
			if wait := attempts[n+1] - attempts[n]; wait < time.Second || wait > most+250*time.Millisecond {
				s.Errorf("wait after %d failures = %v, want 1 s to %v", n+1, wait, most)
			}
		}
		if c := s.command(ids[0]); c.State != history.CommandDone || c.Attempts != 4 || c.LastError != "" {
			s.Errorf("command that was sent at last is %+v", c)
		}
		s.expect(ids[1], history.CommandDone)
		if got := s.relay.Status(); got.Retried != 4 || got.Sent != 3 || got.DeadLettered != 0 {
			s.Errorf("status is %+v", got)
		}
	})
}

func TestWhatCannotBeSentBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err      error
		attempts int
	}{
		"permanent":       {fmt.Errorf("queue mail: %w", relay.ErrPermanent), 1},
		"tried too often": {errors.New("refused"), 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := func(_ context.Context, c history.Command, _ int) (relay.Sent, error) {
				if c.Summary == "a0" {
					return relay.Sent{}, test.err
				}
				return relay.Sent{}, nil
			}
			play(t, broker, func(o *relay.Options) { o.MaxRetries = 3 }, func(s *scene) {
				s.run()
				ids := s.enqueue(pendingCommand("a", "a0"), pendingCommand("a", "a1"))
				s.pass(time.Minute)
				c := s.command(ids[0])
				if c.State != history.CommandDead || c.Attempts != test.attempts || c.LastError != test.err.Error() || c.DoneAt.IsZero() {
					s.Errorf("command is %+v", c)
				}
				s.expect(ids[1], history.CommandDone) // a dead one holds back nobody
				stats, err := s.store.OutboxStats(s.Context())
				if err != nil {
					s.Fatal(err)
				}
				if stats.DeadLetters != 1 || len(stats.TopErrors) != 1 {
					s.Errorf("stats are %+v", stats)
				}
			})
		})
	}
}

func TestABrokerThatIsAwayOnlyDelays(t *testing.T) {
	t.Parallel()
	const outage = 30 * time.Second
	begun := time.Time{}
	broker := func(context.Context, history.Command, int) (relay.Sent, error) {
		if d := time.Since(begun); d >= time.Second && d < time.Second+outage {
			return relay.Sent{}, unavailable()
		}
		<-time.After(10 * time.Millisecond)
		return relay.Sent{}, nil
	}
	play(t, broker, nil, func(s *scene) {
		begun = s.begun
		s.run()
		var ids []int64
		for _, group := range []string{"a", "b", "c", "d"} {
			ids = append(ids, s.enqueue(several(group, 125)...)...)
		}
		s.pass(5 * time.Second)
		if got := s.relay.Status(); !got.BreakerOpen || got.LastError == "" || !got.BreakerUntil.After(time.Now()) {
			s.Errorf("status during the outage is %+v", got)
		}
		s.pass(outage + 10*time.Second)
		sent := map[string]int{} // by group, the next one
		for _, id := range ids {
			c := s.command(id)
			if c.State != history.CommandDone || c.Attempts != 0 {
				s.Fatalf("command %s is %s after %d attempts", c.Summary, c.State, c.Attempts)
			}
		}
		during := 0
		for _, a := range s.tried() {
			if a.At >= time.Second && a.At < time.Second+outage {
				during++
				continue
			}
			if want := fmt.Sprintf("%s%d", a.Summary[:1], sent[a.Summary[:1]]); a.Summary != want {
				s.Fatalf("%s was sent, want %s", a.Summary, want)
			}
			sent[a.Summary[:1]]++
		}
		// The four groups that were at work, then one command every two seconds.
		if during > 4+15 {
			s.Errorf("%d attempts while the broker was away, want 19 at most", during)
		}
		if got := s.relay.Status(); got.BreakerOpen || got.LastError != "" || got.Deferred != uint64(during) || got.DeadLettered+got.Retried != 0 {
			s.Errorf("status afterwards is %+v, want %d deferred", got, during)
		}
	})
}

func TestOneOutageDoesNotOpenTheBreaker(t *testing.T) {
	t.Parallel()
	broker := func(_ context.Context, c history.Command, n int) (relay.Sent, error) {
		if c.Group == "a" && n == 1 {
			return relay.Sent{}, unavailable()
		}
		return relay.Sent{}, nil
	}
	play(t, broker, nil, func(s *scene) {
		s.run()
		a := s.enqueue(pendingCommand("a", "a0"))
		s.pass(0)
		b := s.enqueue(pendingCommand("b", "b0"))
		s.pass(0)
		s.expect(b[0], history.CommandDone)
		c := s.command(a[0])
		if c.State != history.CommandPending || c.Attempts != 0 || c.Deferrals != 1 {
			s.Errorf("command is %s after %d attempts and %d deferrals", c.State, c.Attempts, c.Deferrals)
		}
		s.pass(4 * time.Second)
		s.expect(a[0], history.CommandDone)
	})
}

func TestACommandThatNeverComesThroughHoldsBackItsGroupAlone(t *testing.T) {
	t.Parallel()
	broker := func(_ context.Context, c history.Command, _ int) (relay.Sent, error) {
		if c.Summary == "a0" {
			return relay.Sent{}, unavailable()
		}
		return relay.Sent{}, nil
	}
	play(t, broker, nil, func(s *scene) {
		s.run()
		ids := s.enqueue(pendingCommand("a", "a0"), pendingCommand("a", "a1"))
		s.pass(2500 * time.Millisecond)
		if !s.relay.Status().BreakerOpen {
			s.Error("the breaker is closed after two outages in a row")
		}
		ids = append(ids, s.enqueue(several("b", 100)...)...)
		s.pass(3 * time.Second)
		for _, id := range ids[2:] {
			s.expect(id, history.CommandDone)
		}
		s.expect(ids[0], history.CommandPending)
		s.expect(ids[1], history.CommandPending)
	})
}

func TestATimeoutOfTheBrokerIsAnOutage(t *testing.T) {
	t.Parallel()
	noReply := func(ctx context.Context, c history.Command, _ int) (relay.Sent, error) {
		if c.Group == "good" {
			return relay.Sent{}, nil
		}
		<-ctx.Done()
		return relay.Sent{}, ctx.Err()
	}
	play(t, noReply, nil, func(s *scene) {
		s.run()
		ids := s.enqueue(pendingCommand("a", "a0"), pendingCommand("a", "a1"))
		s.pass(11 * time.Second)
		if c := s.command(ids[0]); c.State != history.CommandPending || c.Attempts != 0 || c.Deferrals != 1 || c.LastError == "" {
			s.Errorf("command is %+v, want it put off", c)
		}
		s.pass(5 * time.Second) // it is tried again
		s.enqueue(pendingCommand("good", "good"))
		s.pass(20 * time.Second)
		if c := s.command(ids[0]); c.Attempts == 0 {
			s.Error("no attempt was counted although the broker took another command meanwhile")
		}
	})
}

func TestATimeoutElsewhereIsNoOutage(t *testing.T) {
	t.Parallel()
	away := func(ctx context.Context, c history.Command, _ int) (relay.Sent, error) {
		if c.Group == "good" {
			return relay.Sent{}, nil
		}
		<-ctx.Done()
		return relay.Sent{}, relay.Elsewhere(ctx.Err())
	}
	play(t, away, nil, func(s *scene) {
		s.run()
		var ids []int64
		for _, group := range []string{"a", "b", "c", "d", "e", "f"} {
			ids = append(ids, s.enqueue(pendingCommand(group, group))...)
		}
		s.pass(10*time.Second + 500*time.Millisecond)
		for _, id := range ids {
			if c := s.command(id); c.Attempts != 1 || c.Deferrals != 0 {
				s.Errorf("command is %+v, want a failed attempt", c)
			}
		}
		good := s.enqueue(pendingCommand("good", "good"))
		s.pass(100 * time.Millisecond)
		s.expect(good[0], history.CommandDone)
	})
}

func TestNothingIsSentThatHasExpired(t *testing.T) {
	t.Parallel()
	slow := func(context.Context, history.Command, int) (relay.Sent, error) {
		<-time.After(time.Second)
		return relay.Sent{}, nil
	}
	play(t, slow, nil, func(s *scene) {
		soon := func(c history.Command) history.Command {
			c.ExpiresAt = time.Now().Add(1500 * time.Millisecond)
			return c
		}
		waits := s.enqueue(soon(pendingCommand("z", "z0"))) // until the relay runs
		s.pass(2 * time.Second)
		s.run()
		ids := s.enqueue(pendingCommand("a", "a0"), soon(pendingCommand("a", "a1")), soon(pendingCommand("a", "a2")), pendingCommand("a", "a3"))
		s.pass(10 * time.Second)
		if diff := cmp.Diff([]string{"a0", "a1", "a3"}, s.order()); diff != "" {
			s.Errorf("sent (-want +got):\n%s", diff)
		}
		s.expect(waits[0], history.CommandExpired)
		s.expect(ids[2], history.CommandExpired)
		if got := s.relay.Status().Expired; got != 2 {
			s.Errorf("%d expired, want 2", got)
		}
	})
}

func TestSendingEndsWithTheExpiry(t *testing.T) {
	t.Parallel()
	hung := func(ctx context.Context, _ history.Command, _ int) (relay.Sent, error) {
		<-ctx.Done()
		return relay.Sent{}, ctx.Err()
	}
	play(t, hung, nil, func(s *scene) {
		s.run()
		c := pendingCommand("a", "a0")
		c.ExpiresAt = time.Now().Add(3 * time.Second)
		ids := s.enqueue(c)
		s.pass(8 * time.Second)
		s.expect(ids[0], history.CommandExpired)
		if got := s.order(); len(got) != 1 {
			s.Errorf("sent %v, want one attempt", got)
		}
	})
}

func TestWhatACrashLeavesInFlightIsSentAtTheStart(t *testing.T) {
	t.Parallel()
	play(t, willing, nil, func(s *scene) {
		ids := s.enqueue(several("a", 3)...)
		claimed, err := s.store.Claim(s.Context(), "relay", time.Now().Add(time.Hour), 2, 2) // by a clock that was ahead
		if err != nil || len(claimed.Commands) != 2 {
			s.Fatalf("claimed %d commands: %v", len(claimed.Commands), err)
		}
		settle(s.T, s.store, history.Outcome{ID: ids[1], State: history.CommandSent, SentAt: time.Now(), Expected: []string{"w1"}})
		s.run()
		s.pass(0)
		if diff := cmp.Diff([]string{"a0", "a2"}, s.order()); diff != "" {
			s.Errorf("sent (-want +got):\n%s", diff)
		}
		s.expect(ids[0], history.CommandDone)
		s.expect(ids[1], history.CommandNoReply) // nobody waits for its answers any more
		if got := s.relay.Status().Reclaimed; got != 1 {
			s.Errorf("%d reclaimed, want 1", got)
		}
	})
}

func settle(t *testing.T, s history.Outbox, outcomes ...history.Outcome) {
	t.Helper()
	if err := s.RecordOutcomes(t.Context(), "relay", time.Now(), outcomes); err != nil {
		t.Fatalf("settle: %v", err)
	}
}

func TestStaleClaimsAreReclaimedButNotWhatIsBeingSent(t *testing.T) {
	t.Parallel()
	slow := func(context.Context, history.Command, int) (relay.Sent, error) {
		<-time.After(5 * time.Minute)
		return relay.Sent{}, nil
	}
	play(t, slow, nil, func(s *scene) {
		s.run()
		s.enqueue(pendingCommand("a", "a0"))
		s.pass(0)
		later := pendingCommand("b", "b0")
		later.DueAt = time.Now().Add(time.Minute) // the relay does not take it
		s.enqueue(later)
		if claimed, err := s.store.Claim(s.Context(), "relay", later.DueAt, 1, 1); err != nil || len(claimed.Commands) != 1 {
			s.Fatalf("claimed %d commands: %v", len(claimed.Commands), err)
		}
		s.pass(4 * time.Minute)
		if diff := cmp.Diff([]string{"a0", "b0"}, s.order()); diff != "" {
			s.Errorf("sent (-want +got):\n%s", diff)
		}
	})
}
