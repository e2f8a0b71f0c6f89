package outboxwatch_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source returns the stats that it was given last. Its clock is an hour ahead.
type source struct {
	outboxwatch.Source

	mu    sync.Mutex
	stats outboxwatch.Stats
	err   error
	takes time.Duration
	reads int
}

const ahead = time.Hour

func (*source) Name() string   { return "shop" }
func (*source) String() string { return "postgresql://db/shop" }
func (*source) Close() error   { return nil }

func (s *source) Stats(context.Context) (outboxwatch.Stats, error) {
	s.mu.Lock()
	takes := s.takes
	s.mu.Unlock()
	if takes > 0 { // else the order with other timers of this moment would be undefined
		<-time.After(takes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	stats := s.stats
	stats.Now = time.Now().Add(ahead)
	return stats, s.err
}

func (*source) Rows(context.Context, outboxwatch.RowRequest) (page outboxwatch.RowPage, err error) {
	return page, nil
}

func (*source) DeadLetters(context.Context, outboxwatch.DeadLetterRequest) (page outboxwatch.DeadLetterPage, err error) {
	return page, nil
}

// ByTask is slow, whatever the context.
func (*source) ByTask(context.Context, []string) ([]outboxwatch.Row, []outboxwatch.DeadLetter, error) {
	<-time.After(30 * time.Second)
	return nil, nil, nil
}

func (s *source) set(stats outboxwatch.Stats, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats, s.err = stats, err
}

func (s *source) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// samples keeps the newest sample of each minute.
type samples struct {
	mu   sync.Mutex
	kept map[int64]history.OutboxSample
	n    int
}

func (s *samples) SaveOutboxSample(_ context.Context, o history.OutboxSample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[o.Minute] = o
	s.n++
	return nil
}

func (*samples) OutboxSamples(context.Context, string, time.Time, time.Time, time.Duration) ([]history.OutboxSample, error) {
	return nil, nil
}

// watch runs a watcher in a bubble.
func watch(t *testing.T, test func(t *testing.T, s *source, kept *samples, w *outboxwatch.Watcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, kept := &source{}, &samples{kept: map[int64]history.OutboxSample{}}
		w, err := outboxwatch.New(outboxwatch.Options{Sources: []outboxwatch.Source{s}, Samples: kept})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Errorf("run: %v", err)
			}
		})
		defer func() { // also when the test ends early
			cancel()
			run.Wait()
			if err := w.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		synctest.Wait()
		test(t, s, kept, w)
	})
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// ready is an outbox whose first row has been ready since an age ago.
func ready(id int64, age time.Duration) outboxwatch.Stats {
	since := time.Now().Add(ahead - age)
	return outboxwatch.Stats{
		FirstReady: id, ReadySince: since, OldestReady: since, DeadLetters: history.Count{N: 3, Exact: true},
		States: map[outboxwatch.State]outboxwatch.Count{outboxwatch.Pending: {N: 7, Exact: true}},
	}
}

func TestReadsEveryFiveSeconds(t *testing.T) {
	t.Parallel()
	watch(t, func(t *testing.T, s *source, _ *samples, w *outboxwatch.Watcher) {
		t.Helper()
		changed, before := w.Changed(), s.count()
		pass(time.Minute)
		if got := s.count() - before; got != 12 {
			t.Errorf("%d reads in a minute, want 12", got)
		}
		select {
		case <-changed:
		default:
			t.Error("nothing has changed")
		}
		before = s.count()
		w.Refresh("shop")
		pass(0)
		if got := s.count() - before; got != 1 {
			t.Errorf("%d reads at a request, want 1", got)
		}
		s.mu.Lock()
		s.takes = time.Second // a twentieth of the time at most
		s.mu.Unlock()
		before = s.count()
		pass(210 * time.Second)
		if got := s.count() - before; got > 11 {
			t.Errorf("%d reads of a second each in 210 s, want 11 at most", got)
		}
	})
}

func TestRelayStopped(t *testing.T) {
	t.Parallel()
	watch(t, func(t *testing.T, s *source, _ *samples, w *outboxwatch.Watcher) {
		t.Helper()
		stopped := func() bool { return w.Snapshot()[0].Relay.Stopped }
		pass(time.Hour)
		if stopped() {
			t.Error("stopped though nothing is ready")
		}
		s.set(ready(1, time.Hour), nil) // a backlog that is old when it is first seen
		pass(outboxwatch.StoppedAfter - 10*time.Second)
		if stopped() {
			t.Error("stopped before rows were watched for long enough")
		}
		pass(20 * time.Second)
		if !stopped() {
			t.Error("not stopped although no row is taken")
		}
		for id := int64(2); id < 60; id++ { // a relay that takes a row from time to time
			s.set(ready(id, time.Hour), nil)
			pass(outboxwatch.StoppedAfter - 10*time.Second)
			if stopped() {
				t.Fatalf("stopped although row %d was taken", id-1)
			}
		}
		for range 10 { // a relay whose first row stays, since it fails and is due again
			stats := ready(60, time.Hour)
			stats.LastTaken = time.Now().Add(ahead)
			s.set(stats, nil)
			pass(outboxwatch.StoppedAfter - 10*time.Second)
			if stopped() {
				t.Fatal("stopped although rows are taken")
			}
		}
		s.set(ready(61, 0), nil)
		pass(outboxwatch.StoppedAfter + 10*time.Second)
		if !stopped() {
			t.Error("not stopped although a new row is not taken")
		}
		s.set(outboxwatch.Stats{}, nil)
		pass(10 * time.Second)
		if stopped() {
			t.Error("stopped although the outbox is empty")
		}
	})
}

func TestAwayDatabaseIsAskedLessOften(t *testing.T) {
	t.Parallel()
	watch(t, func(t *testing.T, s *source, _ *samples, w *outboxwatch.Watcher) {
		t.Helper()
		s.set(ready(1, 0), nil)
		pass(10 * time.Second)
		s.set(outboxwatch.Stats{}, &outboxwatch.Error{Fault: outboxwatch.FaultAway, Text: "Away."})
		pass(10 * time.Minute)
		before := s.count()
		pass(time.Hour)
		if got := s.count() - before; got < 60 || got > 180 {
			t.Errorf("%d reads in an hour, want about one in half a minute", got)
		}
		o := w.Snapshot()[0]
		if o.Err == nil || o.Err.Text != "Away." || o.Stats.Ready().N != 7 || o.FailedAt.Before(o.ReadAt) {
			t.Errorf("outbox = %+v, want the last numbers and why there are no new ones", o)
		}
		s.set(ready(1, 0), errors.New("odd"))
		pass(2 * time.Minute)
		if o := w.Snapshot()[0]; o.Err == nil || o.Err.Fault != outboxwatch.FaultOther {
			t.Errorf("error = %v, want fault other", o.Err)
		}
		s.set(ready(1, 0), nil)
		pass(2 * time.Minute)
		if o := w.Snapshot()[0]; o.Err != nil || !o.FailedAt.IsZero() {
			t.Errorf("error = %v after the database is back", o.Err)
		}
	})
}

// TestLookDoesNotWait looks tasks up, as their pages do, while a database does not answer.
func TestLookDoesNotWait(t *testing.T) {
	t.Parallel()
	watch(t, func(t *testing.T, s *source, _ *samples, w *outboxwatch.Watcher) {
		t.Helper()
		look := func(id string) time.Duration {
			start := time.Now()
			w.Look(t.Context(), id)
			return time.Since(start)
		}
		if took := look("a"); took > time.Second {
			t.Errorf("a task was looked up for %v, want a second at most", took)
		}
		s.set(outboxwatch.Stats{}, &outboxwatch.Error{Fault: outboxwatch.FaultAway, Text: "Away."})
		pass(time.Minute)
		if took := look("b"); took > 0 {
			t.Errorf("a task was looked up for %v in an outbox that is away", took)
		}
	})
}

func TestSamplesAreTheHighestOfAMinute(t *testing.T) {
	t.Parallel()
	watch(t, func(t *testing.T, s *source, kept *samples, _ *outboxwatch.Watcher) {
		t.Helper()
		pass(time.Minute - time.Duration(time.Now().UnixNano())%time.Minute)
		s.set(ready(1, time.Minute), nil)
		pass(20 * time.Second)
		s.set(outboxwatch.Stats{}, nil)
		at := time.Now().Unix() / 60
		pass(39 * time.Second)
		kept.mu.Lock()
		defer kept.mu.Unlock()
		got := kept.kept[at]
		if got.Ready != 7 || got.DeadLetters != 3 || got.OldestReady < time.Minute || got.OldestReady > 2*time.Minute {
			t.Errorf("sample = %+v, want the highest values of its minute", got)
		}
	})
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	if err := outboxwatch.Check([]outboxwatch.Source{&source{}, &source{}}); err == nil || !strings.Contains(err.Error(), "?name=") {
		t.Errorf("two sources of one name: %v", err)
	}
	if err := outboxwatch.Check(make([]outboxwatch.Source, outboxwatch.MaxSources+1)); err == nil {
		t.Error("too many sources: no error")
	}
}

// TestStateIsThePackagesFilter compares StateOf with the condition by which the relay of django-celery-outbox selects
// rows.
func TestStateIsThePackagesFilter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_790_000_000, 0)
		moment := rapid.Custom(func(t *rapid.T) time.Time {
			if rapid.Bool().Draw(t, "null") {
				return time.Time{}
			}
			return now.Add(time.Duration(rapid.IntRange(-600, 600).Draw(t, "s")) * time.Second)
		})
		const stale = 5 * time.Minute
		r := outboxwatch.Row{UpdatedAt: moment.Draw(t, "updated_at"), RetryAfter: moment.Draw(t, "retry_after"), SchemaVersion: rapid.IntRange(0, 2).Draw(t, "schema_version")}
		pending := r.UpdatedAt.IsZero() || !r.RetryAfter.IsZero() && !r.RetryAfter.After(now) ||
			r.RetryAfter.IsZero() && !r.UpdatedAt.After(now.Add(-stale))
		pending = pending && r.SchemaVersion == 1
		if got := outboxwatch.StateOf(r, now, stale).Ready(); got != pending {
			t.Errorf("%+v is %s, which is ready: %t; the relay takes it: %t", r, outboxwatch.StateOf(r, now, stale), got, pending)
		}
	})
}
