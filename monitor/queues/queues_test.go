package queues_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/queues"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeBroker returns queue stats. It may be changed between them.
type fakeBroker struct {
	shy bool // it tells of queues only if asked for them

	mu     sync.Mutex
	queues map[string]broker.Queue
	info   broker.Info
	err    error
	asked  [][]string
	times  []time.Time
}

func (b *fakeBroker) stats(_ context.Context, names []string) (broker.QueueStats, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, names)
	b.times = append(b.times, time.Now())
	s := broker.QueueStats{At: time.Now(), Source: "test", Broker: b.info}
	for _, q := range b.queues {
		if !b.shy || slices.Contains(names, q.Name) {
			s.Queues = append(s.Queues, q)
		}
	}
	for _, name := range names {
		if _, ok := b.queues[name]; !ok {
			s.Queues = append(s.Queues, broker.Queue{Name: name, Missing: true})
		}
	}
	return s, b.err
}

func (b *fakeBroker) set(q broker.Queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queues == nil {
		b.queues = make(map[string]broker.Queue)
	}
	b.queues[q.Name] = q
}

func (b *fakeBroker) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *fakeBroker) looks() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.times)
}

// watch runs a watcher of b until the test ends.
func watch(t *testing.T, b *fakeBroker, o queues.Options) *queues.Watcher {
	t.Helper()
	o.Stats = b.stats
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

func TestPollsOftenWhileWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		b := &fakeBroker{}
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

func TestManyWatchersShareAPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBroker{}
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

func TestChangedIsClosedByEveryPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBroker{}
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
		b := &fakeBroker{}
		b.set(broker.Queue{Name: "mail", Ready: new(int64(3))})
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

func TestPollsQueuesThatAnythingNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBroker{shy: true}
		b.set(broker.Queue{Name: "mail", Ready: new(int64(0))})
		b.set(broker.Queue{Name: "stuck", Ready: new(int64(9))})
		b.set(broker.Queue{Name: "untold", Ready: new(int64(9))})
		known := map[string][]string{"mail": {"w2", "w1"}, "planned": nil, "stuck": {}}
		var mu sync.Mutex
		w := watch(t, b, queues.Options{
			Consumers: func() map[string][]string {
				mu.Lock()
				defer mu.Unlock()
				return maps.Clone(known)
			},
			Counters: func() map[string]queues.Counters { return map[string]queues.Counters{"sent": {Sent: 1}} },
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
		if diff := cmp.Diff([]string{"w1", "w2"}, mail.Workers); diff != "" || !mail.WorkersKnown {
			t.Errorf("workers of mail, asked %t (-want +got):\n%s", mail.WorkersKnown, diff)
		}
		if s.Queues[1].WorkersKnown || !s.Queues[1].Missing {
			t.Errorf("planned: asked %t, missing %t, want false, true", s.Queues[1].WorkersKnown, s.Queues[1].Missing)
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

// near allows for what happens between a total and the time of a look.
// TestTotalsBehindTheDepth has events tell late of what left, so that more seems to have come, and then less.
// expectWarnings fails the test unless each warning holds the text at its place.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]queues.Options{
		"no stats":     {},
		"looks before": {Stats: new(fakeBroker).stats, Every: -1},
	} {
		if _, err := queues.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
