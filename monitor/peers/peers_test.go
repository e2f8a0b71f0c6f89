package peers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/peers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// umbel is one that runs.
type umbel struct {
	*peers.Peers
	stop func()
}

// start runs peers on b. The test stops them at its end, if it has not done so itself.
func start(t *testing.T, b broker.Broker, host string) umbel {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := peers.New(peers.Options{Broker: b, Host: host})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	stop := func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return umbel{p, stop}
}

// pass lets time pass in the bubble.
func pass(d time.Duration) { <-time.After(d) }

// states are those of all, by time in the bubble.
func states(all ...umbel) []peers.State {
	synctest.Wait()
	s := make([]peers.State, len(all))
	for i, u := range all {
		s[i] = u.Status().State
	}
	return s
}

func expectStates(t *testing.T, when string, all []umbel, want ...peers.State) {
	t.Helper()
	if got := states(all...); !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", when, got, want)
		for _, u := range all {
			t.Logf("%+v", u.Status())
		}
	}
}

// silentBroker is a broker whose connections can be cut on one side: what the process publishes is lost.
type silentBroker struct {
	*inproc.Broker
	silent atomic.Bool
}

func (b *silentBroker) OpenPeers(ctx context.Context) (broker.PeerConn, error) {
	c, err := b.Broker.OpenPeers(ctx)
	return &silentConn{c, b}, err
}

type silentConn struct {
	broker.PeerConn
	broker *silentBroker
}

func (c *silentConn) Publish(ctx context.Context, body []byte) error {
	if c.broker.silent.Load() {
		return nil
	}
	return c.PeerConn.Publish(ctx, body)
}

func TestOneOfThreeLeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{})
		one := start(t, b, "one")
		expectStates(t, "at the start", []umbel{one}, peers.Joining)
		pass(1500 * time.Millisecond)
		expectStates(t, "alone", []umbel{one}, peers.Leads)
		two, three := start(t, b, "two"), start(t, b, "three")
		pass(3 * time.Second)
		all := []umbel{one, two, three}
		expectStates(t, "after two have joined", all, peers.Leads, peers.Follows, peers.Follows)
		if got := two.Status(); len(got.Peers) != 2 || got.Leader() == nil || got.Leader().Host != "one" {
			t.Errorf("the second knows %+v, want two peers, of which the first leads", got)
		}
		pass(time.Hour)
		expectStates(t, "an hour later", all, peers.Leads, peers.Follows, peers.Follows)
		one.stop()
		pass(time.Second)
		got := states(two, three)
		slices.Sort(got)
		if !slices.Equal(got, []peers.State{peers.Follows, peers.Leads}) {
			t.Errorf("after the leader has stopped: %v, want one of two to lead", got)
		}
	})
}

func TestManyJoinAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{})
		var all []umbel
		for i := range 10 {
			all = append(all, start(t, b, fmt.Sprint("host-", i)))
		}
		for range 200 { // 20 s
			pass(100 * time.Millisecond)
			var leads int
			for _, s := range states(all...) {
				if s == peers.Leads {
					leads++
				}
				if s == peers.Fallback {
					t.Fatalf("fallback without a silent peer: %v", states(all...))
				}
			}
			if leads > 1 {
				t.Fatalf("%d lead", leads)
			}
		}
		if got := states(all...); !slices.Contains(got, peers.Leads) {
			t.Errorf("states %v, want one to lead", got)
		}
	})
}

func TestSilentLeaderIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{})
		dying := &silentBroker{Broker: b}
		one := start(t, dying, "one")
		pass(2 * time.Second)
		two, three := start(t, b, "two"), start(t, b, "three")
		pass(3 * time.Second)
		expectStates(t, "before", []umbel{one, two, three}, peers.Leads, peers.Follows, peers.Follows)
		dying.silent.Store(true)
		pass(7 * time.Second)
		expectStates(t, "within the lease", []umbel{two, three}, peers.Follows, peers.Follows)
		pass(3500 * time.Millisecond) // the last announcement came before
		expectStates(t, "after the lease", []umbel{two, three}, peers.Fallback, peers.Fallback)
		if got := two.Status(); got.Reason != "Umbel on one is silent and may have led, so each Umbel asks the workers itself for now." || !two.Leads() {
			t.Errorf("status %+v, want it to say who is silent", got)
		}
		pass(25 * time.Second)
		got := states(two, three)
		slices.Sort(got)
		if !slices.Equal(got, []peers.State{peers.Follows, peers.Leads}) {
			t.Errorf("after the silent one is forgotten: %v, want one of two to lead", got)
		}
		four := start(t, b, "four")
		pass(3 * time.Second)
		expectStates(t, "a new one", []umbel{four}, peers.Follows)

		dying.silent.Store(false) // it was alive all the time
		pass(30 * time.Second)
		got = states(one, two, three, four)
		slices.Sort(got)
		if !slices.Equal(got, []peers.State{peers.Follows, peers.Follows, peers.Follows, peers.Leads}) {
			t.Errorf("after the silent one is heard again: %v, want one to lead", got)
		}
	})
}

func TestSilentFollowerDisturbsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{})
		one := start(t, b, "one")
		pass(2 * time.Second)
		dying := &silentBroker{Broker: b}
		two, three := start(t, b, "two"), start(t, dying, "three")
		pass(3 * time.Second)
		dying.silent.Store(true)
		for range 60 {
			pass(time.Second)
			expectStates(t, "with a silent follower", []umbel{one, two}, peers.Leads, peers.Follows)
		}
		_ = three
	})
}

func TestLostConnectionsAreOpenedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{})
		one, two := start(t, b, "one"), start(t, b, "two")
		pass(3 * time.Second)
		for range 20 {
			b.Fail(errors.New("cable cut"))
			pass(5 * time.Second)
			got := states(one, two)
			slices.Sort(got)
			if !slices.Equal(got, []peers.State{peers.Follows, peers.Leads}) {
				t.Fatalf("5 s after connections were lost: %v, want one to lead", got)
			}
		}
	})
}

func TestRefusedAsksAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{})
		b.Refuse(fmt.Errorf("declare exchange: %w", broker.ErrRefused))
		one := start(t, b, "one")
		pass(time.Millisecond)
		expectStates(t, "refused", []umbel{one}, peers.Fallback)
		if want := "Umbel cannot talk to others on the broker, so it asks the workers itself: declare exchange: refused by the broker."; one.Status().Reason != want {
			t.Errorf("reason %q, want %q", one.Status().Reason, want)
		}
		b.Refuse(nil)
		pass(2 * time.Minute)
		expectStates(t, "allowed", []umbel{one}, peers.Leads)
	})
}

// brokenBroker is a broker whose connections do not publish.
type brokenBroker struct {
	*inproc.Broker
	publish func(c broker.PeerConn) error
}

func (b *brokenBroker) OpenPeers(ctx context.Context) (broker.PeerConn, error) {
	c, err := b.Broker.OpenPeers(ctx)
	return &brokenConn{c, b}, err
}

type brokenConn struct {
	broker.PeerConn
	broker *brokenBroker
}

func (c *brokenConn) Publish(context.Context, []byte) error { return c.broker.publish(c.PeerConn) }

func TestConnectionsThatEndAtOnceLeaveItAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		one := start(t, &brokenBroker{inproc.New(inproc.Options{}), func(broker.PeerConn) error {
			tries.Add(1)
			return errors.New("frame too large")
		}}, "one")
		pass(11 * time.Second)
		for range 100 {
			pass(time.Second)
			expectStates(t, "without a connection that lasts", []umbel{one}, peers.Fallback)
		}
		if tries.Load() > 20 {
			t.Errorf("%d connections within two minutes", tries.Load())
		}
	})
}

// TestABrokerThatTakesNothingDelaysNoShutdown has Publish wait without regard to its context, as a write to a full socket does.
func TestABrokerThatTakesNothingDelaysNoShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := start(t, &brokenBroker{inproc.New(inproc.Options{}), func(c broker.PeerConn) error {
			for {
				if _, err := c.Receive(t.Context()); err != nil {
					return err
				}
			}
		}}, "one")
		pass(3 * time.Second)
		began := time.Now()
		one.stop()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it stopped after %v", took)
		}
	})
}

func TestPeerThatNeverAnswersKeepsNobodyFromAsking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{})
		c, err := b.OpenPeers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		announce := func() {
			if err := c.Publish(t.Context(), []byte(`{"version":1,"from":"x","host":"h"}`)); err != nil {
				t.Fatal(err)
			}
		}
		one := start(t, b, "one")
		synctest.Wait()
		for i := range 60 {
			announce()
			pass(time.Second)
			if i > 10 && !one.Leads() {
				t.Fatalf("after %d s: %+v, want it to ask", i, one.Status())
			}
		}
	})
}

func TestOff(t *testing.T) {
	t.Parallel()
	p := peers.New(peers.Options{Broker: inproc.New(inproc.Options{}), Off: "It is off."})
	if err := p.Run(t.Context()); err != nil || !p.Leads() || p.Status().State != peers.Off || p.Status().Reason != "It is off." {
		t.Errorf("switched off: %v, status %+v, want it to ask", err, p.Status())
	}
}

func TestHostileMessagesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{})
		one := start(t, b, "one")
		pass(2 * time.Second)
		c, err := b.OpenPeers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		for _, body := range []string{"", "{", "null", `{"version":9,"from":"x"}`, `{"version":1}`, `{"version":1,"from":"x","lock":[{"kind":"steal"}]}`} {
			if err := c.Publish(t.Context(), []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		if got := one.Status(); got.State != peers.Leads || len(got.Peers) != 0 {
			t.Errorf("after nonsense: %+v, want it to lead alone", got)
		}
		flood(t, c)
		if got := one.Status(); len(got.Peers) != 64 {
			t.Errorf("%d peers are remembered, want 64", len(got.Peers))
		}
		pass(2 * time.Minute)
		expectStates(t, "after the flood", []umbel{one}, peers.Leads)
		two := start(t, b, "two")
		pass(3 * time.Second)
		flood(t, c)
		expectStates(t, "in a flood", []umbel{one, two}, peers.Leads, peers.Fallback)
		pass(2 * time.Minute)
		expectStates(t, "after another flood", []umbel{one, two}, peers.Leads, peers.Follows)
	})
}

// flood publishes messages of more peers than are remembered.
func flood(t *testing.T, c broker.PeerConn) {
	t.Helper()
	for i := range 200 {
		if err := c.Publish(t.Context(), fmt.Appendf(nil, `{"version":1,"from":"flood-%d","host":"h"}`, i)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	}
}
