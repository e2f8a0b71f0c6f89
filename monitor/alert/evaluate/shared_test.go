package evaluate_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/history"
)

// pair are two Umbels on one cluster, of which the first leads. Each has its own store and the same rule.
type pair struct{ one, two *world }

func newPair(t *testing.T) pair {
	t.Helper()
	p := pair{newWorld(t), newWorld(t)}
	p.two.others.follow = true
	for _, w := range []*world{p.one, p.two} {
		w.save("Failures", alert.Rule{Kind: alert.Threshold, Measure: alert.Failed, Limit: 2, Window: 60}, "ops")
	}
	return p
}

// tick has both judge a minute, the second as the first's notes say.
func (p pair) tick(t *testing.T, failed int64) {
	t.Helper()
	for _, w := range []*world{p.one, p.two} {
		w.others.noted = p.one.others.note
		if err := w.tick(failures("a", failed)); err != nil {
			t.Fatal(err)
		}
	}
}

// takeOver has the second lead from now on, without the first.
func (p pair) takeOver(t *testing.T, failed ...int64) {
	t.Helper()
	p.two.others.follow, p.two.others.noted = false, p.one.others.note
	for _, n := range failed {
		if err := p.two.tick(failures("a", n)); err != nil {
			t.Fatal(err)
		}
	}
}

// send has the relay of a process send what its outbox holds.
func (w *world) send(t *testing.T) {
	t.Helper()
	claimed, err := w.Claim(t.Context(), "relay", w.now, 100, 100)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []history.Outcome
	for _, c := range claimed.Commands {
		outcomes = append(outcomes, history.Outcome{ID: c.ID, State: history.CommandDone, SentAt: w.now})
	}
	if err := w.RecordOutcomes(t.Context(), "relay", w.now, outcomes); err != nil {
		t.Fatal(err)
	}
}

func (w *world) expectTold(t *testing.T, when string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, summaries(w.told())); diff != "" {
		t.Errorf("%s: told (-want +got):\n%s", when, diff)
	}
}

// TestANewLeaderDoesNotRepeatWhatWasTold has the leader end after it told that a rule fires. The next one goes on where it was,
// after a restart too.
func TestANewLeaderDoesNotRepeatWhatWasTold(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.tick(t, 5)
	p.one.send(t)
	p.tick(t, 5)
	p.one.expectTold(t, "the first", "Firing: Failures")
	if f := p.two.fired(); len(f) != 1 || !f[0].Notified || !f[0].Start.Equal(begin().Add(time.Minute)) || p.two.Status().Tells {
		t.Errorf("the second has %+v, want one firing since the first minute that was told", f)
	}
	p.two.restart()
	p.takeOver(t, 5, 5)
	p.two.restart()
	p.takeOver(t, 5)
	p.two.expectTold(t, "while it fires")
	p.takeOver(t, 0, 5)
	p.two.expectTold(t, "after it ended and began again", "Resolved: Failures", "Firing: Failures")
}

// TestTheOthersLearnAtOnceWhatWasSent has the leader be killed right after it recorded that a notification was sent.
func TestTheOthersLearnAtOnceWhatWasSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.tick(t, 5)
		ctx, kill := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = p.one.Service.Run(ctx) })
		synctest.Wait()
		if words := strings.Fields(p.one.others.note); len(words) != 1 {
			t.Fatalf("the note before anything is sent: %q", words)
		}
		began := time.Now()
		p.one.send(t)
		close(p.one.sent)
		synctest.Wait()
		kill()
		running.Wait()
		if words := strings.Fields(p.one.others.note); len(words) != 2 || !time.Now().Equal(began) {
			t.Errorf("the note %v after a notification was recorded as sent: %q, want its firing at once", time.Since(began), words)
		}
		p.takeOver(t, 5, 5)
		p.two.expectTold(t, "the second")
	})
}

// TestANewLeaderTellsWhatWasNotSent has the leader crash between the decision and the sending.
func TestANewLeaderTellsWhatWasNotSent(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.tick(t, 5)
	p.tick(t, 5)
	p.one.expectTold(t, "the outbox of the first", "Firing: Failures")
	p.takeOver(t, 5, 5)
	p.two.expectTold(t, "the second", "Firing: Failures")

	p.one.restart() // and its relay sends what it finds, under the key that it had
	want := p.one.told()
	if err := p.one.tick(failures("a", 5)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, p.one.told()); diff != "" {
		t.Errorf("after the restart the outbox of the first differs:\n%s", diff)
	}
}

// TestAnEndIsToldByTheOneThatLeads has a rule stop firing shortly before the leader ends, and after.
func TestAnEndIsToldByTheOneThatLeads(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.tick(t, 5)
	p.one.send(t)
	p.tick(t, 5)
	p.tick(t, 0) // the first tells
	p.takeOver(t, 0, 0)
	p.one.expectTold(t, "the first", "Firing: Failures", "Resolved: Failures")
	p.two.expectTold(t, "the second, after the first told the end")

	p = newPair(t)
	p.tick(t, 5)
	p.one.send(t)
	p.tick(t, 5)
	p.two.others.noted = p.one.others.note
	if err := p.two.tick(failures("a", 0)); err != nil { // the first has crashed, which is not known yet
		t.Fatal(err)
	}
	p.takeOver(t, 0, 0)
	p.two.expectTold(t, "the second, after the first crashed", "Resolved: Failures")
}
