package queues_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker answers surveys. It may be changed between them.
type broker struct {
	shy bool // it tells of queues only if asked for them

	mu     sync.Mutex
	queues map[string]transport.Queue
	info   transport.Info
	err    error
	asked  [][]string
	times  []time.Time
}

func (b *broker) survey(_ context.Context, names []string) (transport.Survey, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, names)
	b.times = append(b.times, time.Now())
	s := transport.Survey{At: time.Now(), Source: "test", Broker: b.info}
	for _, q := range b.queues {
		if !b.shy || slices.Contains(names, q.Name) {
			s.Queues = append(s.Queues, q)
		}
	}
	for _, name := range names {
		if _, ok := b.queues[name]; !ok {
			s.Queues = append(s.Queues, transport.Queue{Name: name, Missing: true})
		}
	}
	return s, b.err
}

func (b *broker) set(q transport.Queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queues == nil {
		b.queues = make(map[string]transport.Queue)
	}
	b.queues[q.Name] = q
}

func (b *broker) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *broker) looks() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.times)
}

// watch runs a watcher of b until the test ends.
func watch(t *testing.T, b *broker, o queues.Options) *queues.Watcher {
	t.Helper()
	o.Survey = b.survey
	w, err := queues.New(o)
	if err != nil {
		t.Fatalf("new watcher: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return w
}

// pass lets time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// only returns the queue of a snapshot that has just one.
func only(t *testing.T, s queues.Snapshot) queues.Queue {
	t.Helper()
	if len(s.Queues) != 1 {
		t.Fatalf("snapshot has %d queues, want 1", len(s.Queues))
	}
	return s.Queues[0]
}

func TestLooksOftenWhileSomebodyDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		b := &broker{}
		w := watch(t, b, queues.Options{})
		pass(70 * time.Second) // looks at 0, 30, 60
		w.Snapshot()           // at once
		pass(31 * time.Second) // every 5 s as long as that counts
		w.Snapshot()           // a second after a look
		pass(5 * time.Second)
		var got []float64
		for _, at := range b.looks() {
			got = append(got, at.Sub(start).Seconds())
		}
		want := []float64{0, 30, 60, 70, 75, 80, 85, 90, 95, 100, 105}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("looks, in seconds (-want +got):\n%s", diff)
		}
	})
}

func TestManyWhoLookAreNoReasonToLookMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		w := watch(t, b, queues.Options{})
		for range 600 {
			w.Snapshot()
			pass(100 * time.Millisecond)
		}
		if got, limit := len(b.looks()), 14; got > limit {
			t.Errorf("%d looks in a minute, want at most %d", got, limit)
		}
	})
}

func TestChangedIsClosedByEveryLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		w := watch(t, b, queues.Options{})
		if !w.Snapshot().At.IsZero() {
			t.Error("a snapshot was taken before the first look")
		}
		for range 3 {
			changed := w.Changed()
			before := w.Snapshot().At
			<-changed
			if at := w.Snapshot().At; !at.After(before) {
				t.Errorf("snapshot at %v after one at %v", at, before)
			}
		}
	})
}

func TestFailureKeepsWhatWasSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		b.set(transport.Queue{Name: "mail", Ready: new(int64(3))})
		w := watch(t, b, queues.Options{})
		synctest.Wait()
		before := w.Snapshot()
		b.fail(errors.New("broker not connected"))
		pass(6 * time.Second)
		s := w.Snapshot()
		if got, want := s.Error, "broker not connected"; got != want {
			t.Errorf("error = %q, want %q", got, want)
		}
		if got := *only(t, s).Ready; got != 3 || !s.At.Equal(before.At) {
			t.Errorf("after a failure: %d ready at %v, want what was seen before", got, s.At)
		}
		b.fail(nil)
		pass(6 * time.Second)
		if s := w.Snapshot(); s.Error != "" || !s.At.After(before.At) {
			t.Errorf("after the next success: error %q at %v", s.Error, s.At)
		}
	})
}

func TestAsksForQueuesThatAnybodyToldOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{shy: true}
		b.set(transport.Queue{Name: "mail", Ready: new(int64(0))})
		b.set(transport.Queue{Name: "stuck", Ready: new(int64(9))})
		b.set(transport.Queue{Name: "untold", Ready: new(int64(9))})
		known := map[string][]string{"mail": {"w2", "w1"}, "planned": nil, "stuck": {}}
		var mu sync.Mutex
		w := watch(t, b, queues.Options{
			Known: func() map[string][]string {
				mu.Lock()
				defer mu.Unlock()
				return maps.Clone(known)
			},
			Flow: func() map[string]queues.Flow { return map[string]queues.Flow{"sent": {Sent: 1}} },
		})
		synctest.Wait()
		s := w.Snapshot()
		var names []string
		for _, q := range s.Queues {
			names = append(names, q.Name)
		}
		if diff := cmp.Diff([]string{"mail", "planned", "sent", "stuck"}, names); diff != "" {
			t.Errorf("queues (-want +got):\n%s", diff)
		}
		mail := s.Queues[0]
		if diff := cmp.Diff([]string{"w1", "w2"}, mail.Workers); diff != "" || !mail.Asked {
			t.Errorf("workers of mail, asked %t (-want +got):\n%s", mail.Asked, diff)
		}
		if s.Queues[1].Asked || !s.Queues[1].Missing {
			t.Errorf("planned: asked %t, missing %t, want false, true", s.Queues[1].Asked, s.Queues[1].Missing)
		}

		mu.Lock()
		known = nil // the workers have gone
		mu.Unlock()
		pass(6 * time.Second)
		b.mu.Lock()
		last := b.asked[len(b.asked)-1]
		b.mu.Unlock()
		if !slices.Contains(last, "mail") {
			t.Errorf("asked for %v, want the queue that workers told of before", last)
		}
		pass(25 * time.Hour)
		s = w.Snapshot()
		names = nil
		for _, q := range s.Queues {
			names = append(names, q.Name)
		}
		if diff := cmp.Diff([]string{"sent", "stuck"}, names); diff != "" {
			t.Errorf("queues a day later (-want +got):\n%s", diff)
		}
	})
}

func TestRates(t *testing.T) {
	t.Parallel()
	const in, out = 10, 4 // a second
	total := func(perSecond int64, start time.Time) *int64 {
		n := 1000 + perSecond*int64(time.Since(start).Seconds())
		return &n
	}
	tests := map[string]struct {
		queue  func(start time.Time) transport.Queue
		flow   bool
		source string
	}{
		"totals of the broker": {
			queue: func(start time.Time) transport.Queue {
				again := total(3, start)
				delivered := *total(out, start) + *again
				return transport.Queue{
					Published: total(in, start), Delivered: &delivered, Redelivered: again, Ready: total(in-out, start),
				}
			},
			source: "broker",
		},
		"published and depth": {
			queue: func(start time.Time) transport.Queue {
				return transport.Queue{Published: total(in, start), Ready: total(in-out, start)}
			},
			source: "broker",
		},
		"delivered and depth": {
			queue: func(start time.Time) transport.Queue {
				return transport.Queue{Delivered: total(out, start), Ready: total(in-out, start)}
			},
			source: "broker",
		},
		"events and depth": {
			queue: func(start time.Time) transport.Queue { return transport.Queue{Ready: total(in-out, start)} },
			flow:  true, source: "events",
		},
		"events": {queue: func(time.Time) transport.Queue { return transport.Queue{} }, flow: true, source: "events"},
		"nothing": {
			queue: func(start time.Time) transport.Queue { return transport.Queue{Ready: total(in-out, start)} },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				o := queues.Options{Every: time.Second}
				if test.flow {
					o.Flow = func() map[string]queues.Flow {
						return map[string]queues.Flow{"mail": {Sent: *total(in, start), Received: *total(out, start)}}
					}
				}
				b := &broker{}
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
					if q.In != nil || q.Out != nil {
						t.Errorf("rates are known from nothing: %v", q)
					}
					return
				}
				if !near(*q.In, in) || !near(*q.Out, out) {
					t.Errorf("rates = %v in, %v out, want %v, %v", *q.In, *q.Out, in, out)
				}
				if q.Drain != nil {
					t.Errorf("a queue that grows drains in %v", *q.Drain)
				}
			})
		})
	}
}

// near allows for what happens between a total and the time of a look.
func near(got, want float64) bool { return got > want*0.95 && got < want*1.05 }

func TestRatesBeginAnewWithTotals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		w := watch(t, b, queues.Options{})
		for i := range 10 {
			b.set(transport.Queue{Name: "mail", Ready: new(int64(0)), Published: new(int64(1000 + 50*i))})
			w.Snapshot()
			pass(5 * time.Second)
		}
		b.set(transport.Queue{Name: "mail", Ready: new(int64(0)), Published: new(int64(3))}) // it was deleted and declared
		pass(5 * time.Second)
		if q := only(t, w.Snapshot()); q.In != nil || q.Out != nil || q.RatesFrom != "" {
			t.Errorf("rates over the end of a queue = %v, %v, want none", q.In, q.Out)
		}
		b.set(transport.Queue{Name: "mail", Ready: new(int64(0)), Published: new(int64(13))})
		pass(5 * time.Second)
		if q := only(t, w.Snapshot()); q.In == nil || *q.In != 2 {
			t.Errorf("rate in of the new queue = %v, want 2", q.In)
		}
	})
}

// TestTotalsBehindTheDepth has events tell late of what left, so that more seems to have come, and then less.
func TestTotalsBehindTheDepth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const perLook = 5 // messages that leave between two looks; none comes
		b := &broker{}
		received, late := int64(0), int64(0)
		b.set(transport.Queue{Name: "mail", Ready: new(int64(1000))})
		w := watch(t, b, queues.Options{Every: time.Second, Flow: func() map[string]queues.Flow {
			b.mu.Lock()
			defer b.mu.Unlock()
			return map[string]queues.Flow{"mail": {Received: max(0, received-late)}}
		}})
		pass(500 * time.Millisecond)
		for i := range int64(100) {
			b.mu.Lock()
			received, late = received+perLook, i%3*perLook
			b.queues["mail"] = transport.Queue{Name: "mail", Ready: new(1000 - received)}
			b.mu.Unlock()
			w.Snapshot()
			pass(time.Second)
		}
		q := only(t, w.Snapshot())
		if q.In == nil || *q.In < 0 || *q.In > 0.2 || !near(*q.Out, perLook) {
			t.Errorf("rates = %v, %v, want about 0 and %d", q.In, q.Out, perLook)
		}
		if q.AgeAtLeast != nil || q.AgeAtMost != nil {
			t.Errorf("age is at least %v, at most %v by events, which are not certain", q.AgeAtLeast, q.AgeAtMost)
		}
	})
}

func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		state := func(i int64) transport.Queue {
			return transport.Queue{
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
		if q := only(t, w.Snapshot()); q.Drain == nil || *q.Drain != 170*time.Second {
			t.Errorf("drain = %v, want 170 s", q.Drain)
		}
	})
}

func TestDepthsAreThinnedAndForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		b.set(transport.Queue{Name: "mail", Ready: new(int64(1))})
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

func TestRestore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		oldest := time.Now().Add(-2 * time.Hour)
		b := &broker{info: transport.Info{Kind: "Redis", VisibilityTimeout: new(90 * time.Minute)}}
		b.set(transport.Queue{Name: "mail", Ready: new(int64(0)), OldestUnacked: &oldest})
		w := watch(t, b, queues.Options{
			Held:     func(_ context.Context, after time.Time) bool { return after.Equal(time.Now().Add(90 * time.Minute)) },
			Complete: func() bool { return true },
		})
		synctest.Wait()
		s := w.Snapshot()
		q := only(t, s)
		if want := oldest.Add(90 * time.Minute); q.Restore == nil || !q.Restore.Equal(want) {
			t.Errorf("restore = %v, want %v", q.Restore, want)
		}
		expectWarnings(t, s.Warnings, "hold tasks back for longer than the visibility timeout of 1 h 30 min")
		expectWarnings(t, q.Warnings, "No worker says that it consumes from it.", "longer than the visibility timeout of 1 h 30 min")
	})
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		queue    transport.Queue
		known    map[string][]string
		complete bool
		want     []string
	}{
		"consumed":                {queue: transport.Queue{Ready: new(int64(1)), Consumers: new(int64(1))}},
		"consumed, workers say":   {queue: transport.Queue{Ready: new(int64(1))}, known: map[string][]string{"mail": {"w1"}}},
		"nobody":                  {queue: transport.Queue{Consumers: new(int64(0))}, want: []string{"Nobody consumes from it."}},
		"nobody, one waits":       {queue: transport.Queue{Ready: new(int64(1)), Consumers: new(int64(0))}, want: []string{"Nobody consumes from it, and 1 message waits."}},
		"nobody, many wait":       {queue: transport.Queue{Ready: new(int64(7)), Consumers: new(int64(0))}, want: []string{"and 7 messages wait."}},
		"unknown":                 {queue: transport.Queue{Ready: new(int64(7))}, want: []string{"Who consumes from it is not known"}},
		"no worker says so":       {queue: transport.Queue{Ready: new(int64(7))}, complete: true, want: []string{"No worker says that it consumes from it, and 7 messages wait."}},
		"missing":                 {queue: transport.Queue{Missing: true}, known: map[string][]string{"mail": {"w1"}}, want: []string{"no queue of this name"}},
		"unreadable":              {queue: transport.Queue{Error: "it belongs to one connection alone"}},
		"hidden without consumer": {queue: transport.Queue{Name: "w1.celery.pidbox", Consumers: new(int64(0))}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if test.queue.Name == "" {
					test.queue.Name = "mail"
				}
				b := &broker{}
				b.set(test.queue)
				w := watch(t, b, queues.Options{
					Known:    func() map[string][]string { return test.known },
					Complete: func() bool { return test.complete },
				})
				synctest.Wait()
				expectWarnings(t, only(t, w.Snapshot()).Warnings, test.want...)
			})
		})
	}
}

// expectWarnings fails the test unless each warning holds the text at its place.
func expectWarnings(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("warnings = %q, want %q", got, want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("warning = %q, want one with %q", got[i], want[i])
		}
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"celery": false, "mail": false, "w1@host.celery.pidbox": true, "a1.reply.celery.pidbox": true,
		"celeryev.1d0f57b0-8c1f-4a3e-9a52-0c1c2d3e4f50": true, "celery_delayed_27": true, "bcast.x": true,
		"1d0f57b0-8c1f-4a3e-9a52-0c1c2d3e4f50": true, "1d0f57b0-8c1f-4a3e-9a52-0c1c2d3e4f5g": false,
		"1d0f57b0x8c1f-4a3e-9a52-0c1c2d3e4f50": false, "umbel.tasks": false, "umbel.abcdefghijklmnopqrstuvwxyz": true,
		"umbel.reply.abcdefghijklmnopqrstuvw234": true, "umbel.ABCDEFGHIJKLMNOPQRSTUVWXYZ": false, "amq.gen-x": true, "": false,
	} {
		if got := queues.Hidden(name); got != want {
			t.Errorf("hidden %q = %t, want %t", name, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b := &broker{}
		b.set(transport.Queue{Name: "events-of-ours"})
		w := watch(t, b, queues.Options{Hide: []string{"events-of-ours"}})
		synctest.Wait()
		if !only(t, w.Snapshot()).Hidden {
			t.Error("a queue that is to be hidden is not")
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]queues.Options{
		"no survey":    {},
		"looks before": {Survey: new(broker).survey, Every: -1},
	} {
		if _, err := queues.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
