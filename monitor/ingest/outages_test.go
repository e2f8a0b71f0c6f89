package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/ingest"
)

// forgetful is a broker that says that it keeps nothing for later.
type forgetful struct{ broker.Broker }

func (forgetful) Ephemeral() bool { return true }

func heartbeat(node string, pid, processed, clock int) []byte {
	return fmt.Appendf(nil, `{"type":"worker-heartbeat","hostname":"%s","pid":%d,"clock":%d,"timestamp":%d,"freq":2.0,"active":0,"processed":%d}`,
		node, pid, clock, 1790000000+clock, processed)
}

func began(node string, id string, clock int) []byte {
	return fmt.Appendf(nil, `{"type":"task-started","hostname":"%s","pid":7,"clock":%d,"timestamp":%d,"uuid":"%s"}`,
		node, clock, 1790000000+clock, id)
}

// lose ends the session, and returns when the monitor has noticed.
func lose(t *testing.T, m *ingester, b *inproc.Broker) {
	t.Helper()
	b.Refuse(errors.New("away"))
	b.Fail(errors.New("cable cut"))
	await(t, m, "the loss", func() bool { return !m.Health().Broker.Connected })
}

func TestOutagesOfAnEphemeralBroker(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	w := &watched{Broker: b}
	m := start(t, forgetful{w})
	events := func(n uint64) func() bool { return func() bool { return m.Health().Events == n } }
	publish(t, b, heartbeat("w1", 7, 100, 1), heartbeat("w2", 7, 50, 2), heartbeat("w3", 7, 9, 3))
	poll(t, "acknowledgements, without which this broker would repeat itself", func() bool { return w.newest() == 3 })
	if got, want := m.Health().Broker.Loss, (ingest.Loss{Ephemeral: true}); got != want {
		t.Errorf("loss before any gap = %+v, want %+v", got, want)
	}

	lose(t, m, b)
	if got, want := m.Health().Broker.Loss, (ingest.Loss{Ephemeral: true}); got != want {
		t.Errorf("loss in the first gap = %+v, want %+v: it is not over", got, want)
	}
	b.Refuse(nil)
	await(t, m, "the broker", func() bool { return m.Health().Broker.Connected })
	// w1 began 5 tasks of which one was seen, w2 has restarted and begun 4, w3 has said nothing yet.
	publish(t, b, began("w1", "a", 4), heartbeat("w1", 7, 105, 5), heartbeat("w1", 7, 109, 6), heartbeat("w2", 8, 4, 7))
	await(t, m, "heartbeats", events(7))
	got := m.Health().Broker.Loss
	if got.Outages != 1 || got.OutageTime <= 0 || got.OutageTime > time.Minute || time.Since(got.LastOutage) > time.Minute {
		t.Errorf("loss after a gap = %+v, want one gap just now", got)
	}
	if want := int64(8); got.MissedTasks != want {
		t.Errorf("unseen tasks = %d, want %d", got.MissedTasks, want)
	}
}

func TestABrokerThatKeepsEventsHasNoOutages(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	m := start(t, b)
	publish(t, b, heartbeat("w1", 7, 100, 1))
	await(t, m, "a worker", func() bool { return m.Health().Events == 1 })
	lose(t, m, b)
	b.Refuse(nil)
	publish(t, b, heartbeat("w1", 7, 105, 2))
	await(t, m, "the next heartbeat", func() bool { return m.Health().Events >= 2 })
	if got, want := m.Health().Broker.Loss, (ingest.Loss{}); got != want {
		t.Errorf("loss = %+v, want %+v", got, want)
	}
}

// TestARestartIsAnOutage stops a monitor for ten minutes, in which a worker begins 40 tasks.
func TestARestartIsAnOutage(t *testing.T) {
	t.Parallel()
	for name, broker := range map[string]func(broker.Broker) broker.Broker{
		"of a broker that forgets":     func(b broker.Broker) broker.Broker { return forgetful{b} },
		"not of one that keeps events": func(b broker.Broker) broker.Broker { return b },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b, s := inproc.New(inproc.Options{}), memoryStore(t)
				o := ingest.Options{Broker: broker(b), Store: s}
				first, err := newIngester(o)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- first.Run(ctx) }()
				publish(t, b, heartbeat("w1", 7, 100, 1), heartbeat("w2", 8, 3, 2))
				saved(t, first, 2)
				cancel()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if got := first.Health().Broker.Loss.Outages; got != 0 {
					t.Errorf("%d gaps at the first start, want none", got)
				}
				left := time.Now()
				<-time.After(10 * time.Minute)
				second := run(t, o)
				await(t, second, "the broker", func() bool { return second.Health().Broker.Connected })
				publish(t, b, heartbeat("w1", 7, 140, 3))
				await(t, second, "the heartbeat", func() bool { return second.Health().Events == 1 })
				got, want := second.Health().Broker.Loss, ingest.Loss{}
				if _, forgets := o.Broker.(forgetful); forgets {
					if off := got.LastOutage.Sub(left).Abs(); off > time.Second || got.OutageTime < 10*time.Minute || got.OutageTime > 10*time.Minute+2*time.Second {
						t.Errorf("loss = %+v, want a gap of 10 minutes from %v", got, left)
					}
					want = ingest.Loss{Ephemeral: true, Outages: 1, MissedTasks: 40, OutageTime: got.OutageTime, LastOutage: got.LastOutage}
				}
				if got != want {
					t.Errorf("loss = %+v, want %+v", got, want)
				}
			})
		})
	}
}
