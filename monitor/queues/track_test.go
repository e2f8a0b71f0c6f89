package queues_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/queues"
)

func TestRates(t *testing.T) {
	t.Parallel()
	const in, out = 10, 4 // a second
	total := func(perSecond int64, start time.Time) *int64 {
		n := 1000 + perSecond*int64(time.Since(start).Seconds())
		return &n
	}
	tests := map[string]struct {
		queue  func(start time.Time) broker.Queue
		flow   bool
		source string
	}{
		"totals of the broker": {
			queue: func(start time.Time) broker.Queue {
				again := total(3, start)
				delivered := *total(out, start) + *again
				return broker.Queue{
					Published: total(in, start), Delivered: &delivered, Redelivered: again, Ready: total(in-out, start),
				}
			},
			source: "broker",
		},
		"published and depth": {
			queue: func(start time.Time) broker.Queue {
				return broker.Queue{Published: total(in, start), Ready: total(in-out, start)}
			},
			source: "broker",
		},
		"delivered and depth": {
			queue: func(start time.Time) broker.Queue {
				return broker.Queue{Delivered: total(out, start), Ready: total(in-out, start)}
			},
			source: "broker",
		},
		"events and depth": {
			queue: func(start time.Time) broker.Queue { return broker.Queue{Ready: total(in-out, start)} },
			flow:  true, source: "events",
		},
		"events": {queue: func(time.Time) broker.Queue { return broker.Queue{} }, flow: true, source: "events"},
		"nothing": {
			queue: func(start time.Time) broker.Queue { return broker.Queue{Ready: total(in-out, start)} },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				o := queues.Options{Every: time.Second}
				if test.flow {
					o.Counters = func() map[string]queues.Counters {
						return map[string]queues.Counters{"mail": {Sent: *total(in, start), Received: *total(out, start)}}
					}
				}
				b := &fakeBroker{}
				step := func() {
					q := test.queue(start)
					q.Name = "mail"
					b.set(q)
				}
				step()
				w := watch(t, b, o)
				for range 200 {
					w.Snapshot()
					pass(500 * time.Millisecond)
					step()
				}
				q := only(t, w.Snapshot())
				if got, want := q.RatesFrom, test.source; got != want {
					t.Errorf("rates from %q, want %q", got, want)
				}
				if test.source == "" {
					if q.InRate != nil || q.OutRate != nil {
						t.Errorf("rates are known from nothing: %v", q)
					}
					return
				}
				if !near(*q.InRate, in) || !near(*q.OutRate, out) {
					t.Errorf("rates = %v in, %v out, want %v, %v", *q.InRate, *q.OutRate, in, out)
				}
				if q.DrainTime != nil {
					t.Errorf("a queue that grows drains in %v", *q.DrainTime)
				}
			})
		})
	}
}

func near(got, want float64) bool { return got > want*0.95 && got < want*1.05 }

func TestRatesRestartWithTotals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBroker{}
		w := watch(t, b, queues.Options{})
		for i := range 10 {
			b.set(broker.Queue{Name: "mail", Ready: new(int64(0)), Published: new(int64(1000 + 50*i))})
			w.Snapshot()
			pass(5 * time.Second)
		}
		b.set(broker.Queue{Name: "mail", Ready: new(int64(0)), Published: new(int64(3))}) // it was deleted and declared
		pass(5 * time.Second)
		if q := only(t, w.Snapshot()); q.InRate != nil || q.OutRate != nil || q.RatesFrom != "" {
			t.Errorf("rates over the end of a queue = %v, %v, want none", q.InRate, q.OutRate)
		}
		b.set(broker.Queue{Name: "mail", Ready: new(int64(0)), Published: new(int64(13))})
		pass(5 * time.Second)
		if q := only(t, w.Snapshot()); q.InRate == nil || *q.InRate != 2 {
			t.Errorf("rate in of the new queue = %v, want 2", q.InRate)
		}
	})
}

func TestTotalsBehindTheDepth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const perLook = 5 // messages that leave between two looks; none comes
		b := &fakeBroker{}
		received, late := int64(0), int64(0)
		b.set(broker.Queue{Name: "mail", Ready: new(int64(1000))})
		w := watch(t, b, queues.Options{Every: time.Second, Counters: func() map[string]queues.Counters {
			b.mu.Lock()
			defer b.mu.Unlock()
			return map[string]queues.Counters{"mail": {Received: max(0, received-late)}}
		}})
		pass(500 * time.Millisecond)
		for i := range int64(100) {
			b.mu.Lock()
			received, late = received+perLook, i%3*perLook
			b.queues["mail"] = broker.Queue{Name: "mail", Ready: new(1000 - received)}
			b.mu.Unlock()
			w.Snapshot()
			pass(time.Second)
		}
		q := only(t, w.Snapshot())
		if q.InRate == nil || *q.InRate < 0 || *q.InRate > 0.2 || !near(*q.OutRate, perLook) {
			t.Errorf("rates = %v, %v, want about 0 and %d", q.InRate, q.OutRate, perLook)
		}
		if q.AgeAtLeast != nil || q.AgeAtMost != nil {
			t.Errorf("age is at least %v, at most %v by events, which are not certain", q.AgeAtLeast, q.AgeAtMost)
		}
	})
}

func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBroker{}
		state := func(i int64) broker.Queue {
			return broker.Queue{
				Name: "mail", Ready: new(1000 - 25*i), Published: new(100 * i), Delivered: new(125 * i),
			}
		}
		b.set(state(0))
		w := watch(t, b, queues.Options{})
		pass(time.Second) // so that nothing changes while it looks
		for i := range int64(6) {
			b.set(state(i + 1))
			w.Snapshot()
			pass(5 * time.Second)
		}
		// 850 wait, 5 a second become fewer.
		if q := only(t, w.Snapshot()); q.DrainTime == nil || *q.DrainTime != 170*time.Second {
			t.Errorf("drain = %v, want 170 s", q.DrainTime)
		}
	})
}

func TestDepthsAreThinnedAndForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBroker{}
		b.set(broker.Queue{Name: "mail", Ready: new(int64(1))})
		w := watch(t, b, queues.Options{})
		for range 3 * 720 { // three hours
			w.Snapshot()
			pass(5 * time.Second)
		}
		points := only(t, w.Snapshot()).Depths
		if got, least, most := len(points), 130, 150; got < least || got > most {
			t.Errorf("%d depths of an hour, want %d to %d", got, least, most)
		}
		now := time.Now()
		for i, p := range points {
			if now.Sub(p.At) > time.Hour+5*time.Second {
				t.Errorf("depth %d is %v old", i, now.Sub(p.At))
			}
			if i == 0 {
				continue
			}
			if gap := p.At.Sub(points[i-1].At); gap <= 0 || gap > 35*time.Second {
				t.Errorf("depth %d comes %v after the one before", i, gap)
			}
		}
	})
}
