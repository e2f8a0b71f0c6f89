package locks_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/idempotency"
	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
)

// scene is a cluster with locks that are watched.
type scene struct {
	*locks.Memory
	*locks.Watcher
	t *testing.T

	mu      sync.Mutex
	cluster *state.Cluster
	clock   int64
	failing error
	scans   int
	p99     time.Duration
}

// watch runs a watcher until the test ends. It is called in a bubble.
func watch(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, cluster: state.New(state.Options{}), Memory: locks.NewMemory(locks.DefaultPatterns(), time.Now)}
	var err error
	s.Watcher, err = locks.New(locks.Options{Source: s, Tasks: s, Rollups: s, Redactor: redact.Default()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	s.event("celery@a", state.WorkerHeartbeat, "", nil)
	return s
}

// Release, String and Close are those of the source where the watcher has other ones.
func (s *scene) String() string { return "memory" }

func (s *scene) Close() error { return nil }

func (s *scene) Release(ctx context.Context, want locks.Expected) (locks.Outcome, error) {
	return s.Memory.Release(ctx, want)
}

func (s *scene) Scan(ctx context.Context, at locks.Cursor) ([]string, locks.Cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scans++
	if s.failing != nil {
		return nil, nil, s.failing
	}
	return s.Memory.Scan(ctx, at)
}

func (s *scene) View(f func(c state.View)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.cluster)
}

func (s *scene) Task(_ context.Context, id string) (t state.Task, err error) {
	s.View(func(c state.View) {
		var ok bool
		if t, ok = c.Task(id); !ok {
			err = history.ErrNotFound
		}
	})
	return t, err
}

func (s *scene) Tasks(_ context.Context, r history.TaskRequest) (history.TaskPage, error) {
	var p history.TaskPage
	s.View(func(c state.View) {
		for _, t := range c.Tasks(state.Query{Limit: 500}).Tasks {
			if r.Query.Match(&t, r.Now) && len(p.Tasks) < r.Limit {
				p.Tasks = append(p.Tasks, t)
			}
		}
	})
	return p, nil
}

func (s *scene) Rollups(_ context.Context, r history.RollupRange, f func(history.Rollup) error) error {
	var h rollup.Histogram
	h.Add(s.p99.Microseconds())
	return f(history.Rollup{Name: r.Names[0], Run: h.Encode()})
}

// event folds an event of now.
func (s *scene) event(worker string, kind state.Kind, id string, change func(e *state.Event)) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock++
	now := time.Now().UnixMicro()
	e := &state.Event{
		Kind: kind, Hostname: worker, PID: 7, Clock: s.clock, Micros: now, ReceivedMicros: now, ID: id, Freq: 1000,
		Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldFreq,
	}
	if change != nil {
		change(e)
	}
	s.cluster.Apply(e)
}

// pause waits, in the time of the bubble.
func pause(d time.Duration) { <-time.After(d) }

// silence lets so much time pass without heartbeats that workers are offline.
func (s *scene) silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cluster.Expire(time.Now().Add(10 * time.Hour).UnixMicro())
}

// start has a worker receive and start a call.
func (s *scene) start(worker, id, kwargs string) {
	s.t.Helper()
	s.event(worker, state.TaskReceived, id, func(e *state.Event) {
		e.Name, e.Args, e.Kwargs = "shop.charge", "()", kwargs
		e.Present |= state.FieldName | state.FieldArgs | state.FieldKwargs
	})
	s.event(worker, state.TaskStarted, id, nil)
}

func (s *scene) succeed(worker, id, result string) {
	s.t.Helper()
	s.event(worker, state.TaskSucceeded, id, func(e *state.Event) {
		e.Result, e.Present = result, e.Present|state.FieldResult
	})
}

// lock takes the lock of a call.
func (s *scene) lock(kwargs, value string, ttl time.Duration) string {
	s.t.Helper()
	v, err := idempotency.Parse([]byte(kwargs))
	if err != nil {
		s.t.Fatal(err)
	}
	print, err := idempotency.Fingerprint("shop.charge", v)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Set(idempotency.KeyPrefix+print, value, until(ttl), false)
	return idempotency.KeyPrefix + print
}

// see reads the locks, as a page that is open, after some time.
func (s *scene) see(after time.Duration) []locks.Lock {
	s.t.Helper()
	for range int(after / time.Second) {
		pause(time.Second)
		s.Snapshot(s.t.Context())
	}
	synctest.Wait()
	got := s.Snapshot(s.t.Context())
	if got.Error != "" {
		s.t.Fatalf("error = %q", got.Error)
	}
	return got.Locks
}

// only returns the only lock, with its marks as words.
func (s *scene) only(after time.Duration) (locks.Lock, string) {
	s.t.Helper()
	list := s.see(after)
	if len(list) != 1 {
		s.t.Fatalf("locks = %+v, want one", list)
	}
	return list[0], marksOf(list[0])
}

func marksOf(l locks.Lock) string {
	var kinds []string
	for _, m := range l.Marks {
		kinds = append(kinds, string(m.Kind))
	}
	return strings.Join(kinds, " ")
}

const token = ":0123456789abcdef0123456789abcdef"

func TestARunningTaskHoldsItsLock(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		value   string
		certain bool
	}{
		"plain": {"processing", false}, "fenced": {"processing" + token, false}, "named": {"processing" + token + ":b", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := watch(t)
				s.start("celery@a", "other", "{'order': ...}") // cut short: it has no call
				s.start("celery@a", "b", "{'order': 'A1'}")
				key := s.lock(`{"order": "A1"}`, tt.value, 10*time.Minute)
				started := time.Now()
				l, marks := s.only(7 * time.Second)
				if l.Key != key || l.Kind != locks.Idempotent || l.Name != "shop.charge" || l.State != locks.Processing || marks != "" {
					t.Errorf("lock = %+v", l)
				}
				if h := l.Holder; h == nil || h.TaskID != "b" || h.Status != locks.Running || h.Worker != "celery@a" || h.Certain != tt.certain {
					t.Errorf("holder = %+v, want b, running", h)
				}
				if !l.AcquiredAt.Equal(started) || l.AcquiredFrom != locks.AcquiredTask || !l.ExpiresAt.Equal(started.Add(10*time.Minute)) {
					t.Errorf("acquired at %v (%s), expires at %v, want %v and 10 min later", l.AcquiredAt, l.AcquiredFrom, l.ExpiresAt, started)
				}
			})
		})
	}
}

func TestLocksOfEndedTasksAreStuck(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *scene){
		"failed":  func(s *scene) { s.event("celery@a", state.TaskFailed, "a", nil) },
		"retried": func(s *scene) { s.event("celery@a", state.TaskRetried, "a", nil) },
		"offline": (*scene).silence,
		"redelivered and skipped": func(s *scene) {
			s.silence()
			s.start("celery@b", "a", "{'order': 'A1'}")
			s.succeed("celery@b", "a", "{'status': 'skipped', 'reason': 'concurrent_execution'}")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := watch(t)
				s.start("celery@a", "a", "{'order': 'A1'}")
				s.lock(`{"order": "A1"}`, "processing", 10*time.Minute)
				if l, marks := s.only(4 * time.Second); marks != "" {
					t.Fatalf("marks = %v, want none yet", l.Marks)
				}
				end(s)
				l, marks := s.only(10 * time.Second)
				if marks != string(locks.Stuck) {
					t.Errorf("marks = %v with holder %+v, want stuck", l.Marks, l.Holder)
				}
			})
		})
	}
}

// A call that was turned away is no holder.
func TestSkippedRunsHoldNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := watch(t)
		s.lock(`{"order": "A1"}`, "processing", 10*time.Minute)
		s.start("celery@a", "a", "{'order': 'A1'}")
		s.succeed("celery@a", "a", "{'status': 'skipped', 'reason': 'concurrent_execution'}")
		if l, marks := s.only(70 * time.Second); marks != "" || l.Holder != nil {
			t.Errorf("marks %v, holder %+v, want none", l.Marks, l.Holder)
		}
	})
}

func TestGoneLocksOfRunningTasksAreShown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		second func(s *scene)
		mark   locks.MarkKind
		text   string
	}{
		"nothing": {func(*scene) {}, locks.Expired, "a second run can start"},
		"a second run": {func(s *scene) {
			s.start("celery@b", "b", "{'order': 'A1'}")
			s.lock(`{"order": "A1"}`, "processing", 10*time.Minute)
		}, locks.SecondRun, "a second run has started: b"},
		"a second run of an unknown task": {func(s *scene) {
			s.lock(`{"order": "A1"}`, "processing", 10*time.Minute)
		}, locks.SecondRun, "the lock was taken again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := watch(t)
				s.start("celery@a", "a", "{'order': 'A1'}")
				s.lock(`{"order": "A1"}`, "processing", 20*time.Second)
				s.only(19 * time.Second)
				s.see(7 * time.Second)
				tt.second(s)
				l := s.see(10 * time.Second)[0]
				if marksOf(l) != string(tt.mark) || !strings.Contains(l.Marks[0].Text, tt.text) || !strings.Contains(l.Marks[0].Text, "TTL") || l.Gone.IsZero() {
					t.Errorf("lock = %+v, want it gone with %q", l, tt.text)
				}
				s.succeed("celery@a", "a", "1")
				s.succeed("celery@b", "b", "1")
				list := s.see(10 * time.Second)
				if shown := slices.ContainsFunc(list, func(l locks.Lock) bool { return !l.Gone.IsZero() }); shown != (tt.mark == locks.SecondRun) {
					t.Errorf("after the end: %+v", list)
				}
			})
		})
	}
}

// A lock that had expired before anybody watched is missed where another lock of the task shows how keys are made.
func TestTasksWithoutTheirLockAreFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := watch(t)
		s.start("celery@a", "a", "{'order': 'A1'}")
		s.see(10 * time.Second)
		if list := s.see(0); len(list) > 0 {
			t.Fatalf("locks = %+v, want none: nothing says that the task has locks", list)
		}
		s.start("celery@a", "b", "{'order': 'A2'}")
		s.lock(`{"order": "A2"}`, "completed", time.Hour)
		s.succeed("celery@a", "b", "1")
		l := s.see(10 * time.Second)[0]
		if marksOf(l) != string(locks.Expired) || l.Holder == nil || l.Holder.TaskID != "a" {
			t.Errorf("lock = %+v, want the one of a, gone", l)
		}
	})
}

// The event of the end of a task comes after its lock is gone.
func TestReleasedLocksAreNotReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := watch(t)
		s.start("celery@a", "a", "{'order': 'A1'}")
		key := s.lock(`{"order": "A1"}`, "processing", time.Minute)
		s.only(4 * time.Second)
		s.Delete(key)
		pause(time.Second)
		s.event("celery@a", state.TaskFailed, "a", nil)
		for range 5 {
			if list := s.see(2 * time.Second); len(list) > 0 {
				t.Errorf("locks = %+v, want none", list)
			}
		}
	})
}

func TestShortTTLsAreMarked(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]string{30 * time.Second: string(locks.TooShort), 50 * time.Second: ""} {
		t.Run(ttl.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := watch(t)
				s.p99 = 20 * time.Second
				s.start("celery@a", "a", "{'order': 'A1'}")
				key := s.lock(`{"order": "A1"}`, "processing"+token, ttl)
				if l, marks := s.only(5 * time.Second); marks != want {
					t.Errorf("marks = %v with p99 %v, want %q", l.Marks, l.RunP99, want)
				}
				s.Set(key, "processing"+token, until(ttl), false) // extended by its task
				if l, marks := s.only(5 * time.Second); marks != "" {
					t.Errorf("marks once extended = %v, want none", l.Marks)
				}
			})
		})
	}
}

func TestOtherKindsOfLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := watch(t)
		s.event("celery@a", state.TaskReceived, "whole", func(e *state.Event) {
			e.Name, e.Args, e.Kwargs = "shop.pay", "('A1', 3)", "{'b': 1}"
			e.Present |= state.FieldName | state.FieldArgs | state.FieldKwargs
		})
		s.event("celery@a", state.TaskStarted, "whole", nil)
		sum := sha256.Sum256([]byte(`[["A1",3],{"b":1}]`))
		s.Set("lock:celery:exec:shop.pay:"+hex.EncodeToString(sum[:]), "processing", until(time.Minute), false)
		for _, e := range []struct{ id, name, kwargs string }{
			{"once", "shop.charge_card", "{'b': True, 'a': 'x_y', 'c': 3}"},
			{"7b0c6a3e-3cf8-4f8c-8d8f-2e1d8c1b0a11", "shop.single", "{}"},
		} {
			s.event("celery@a", state.TaskReceived, e.id, func(ev *state.Event) {
				ev.Name, ev.Args, ev.Kwargs = e.name, "()", e.kwargs
				ev.Present |= state.FieldName | state.FieldArgs | state.FieldKwargs
			})
		}
		s.Set("qo_shop.charge_card_a-x_y_b-True", "6d6e", until(time.Hour), false)
		s.Set("SINGLETONLOCK_098f6bcd4621d373cade4e832627b4f6", "7b0c6a3e-3cf8-4f8c-8d8f-2e1d8c1b0a11", until(0), false)
		s.Set("celery_singleton_none", "x", until(0), false)
		got := make(map[locks.Kind]string)
		for _, l := range s.see(4 * time.Second) {
			holder := ""
			if l.Holder != nil {
				holder = fmt.Sprint(" ", l.Holder.TaskID, " ", l.Holder.Status, " ", l.Holder.Certain)
			}
			got[l.Kind] = fmt.Sprint(l.Name, " ", l.State, holder, " ", l.Persistent)
		}
		for kind, want := range map[locks.Kind]string{
			locks.Idempotent: "shop.pay processing whole running false false",
			locks.Once:       "shop.charge_card held once waiting false false",
			locks.Singleton:  "shop.single held 7b0c6a3e-3cf8-4f8c-8d8f-2e1d8c1b0a11 waiting true true",
			locks.OtherKind:  " unknown true",
		} {
			if got[kind] != want {
				t.Errorf("%s = %q, want %q", kind, got[kind], want)
			}
		}
	})
}

func TestReleaseNeedsTheLockAsItWasSeen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(s *scene, key string)
		want   locks.Outcome
	}{
		"unchanged":      {func(*scene, string) {}, locks.Released},
		"gone":           {func(s *scene, key string) { s.Delete(key) }, locks.Gone},
		"completed":      {func(s *scene, key string) { s.Set(key, "completed", until(time.Hour), false) }, locks.Changed},
		"taken again":    {func(s *scene, key string) { s.Set(key, "processing", until(10*time.Minute), false) }, locks.TakenAgain},
		"another holder": {func(s *scene, _ string) { s.start("celery@b", "b", "{'order': 'A1'}") }, locks.OtherHolder},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := watch(t)
				s.start("celery@a", "a", "{'order': 'A1'}")
				key := s.lock(`{"order": "A1"}`, "processing", 10*time.Minute)
				s.event("celery@a", state.WorkerOffline, "", nil)
				l, _ := s.only(4 * time.Second)
				tt.change(s, key)
				pause(time.Minute) // nobody looks
				for range 2 {
					got, err := s.Watcher.Release(t.Context(), l.Seen())
					if err != nil || got != tt.want {
						t.Errorf("Release = %q, %v, want %q", got, err, tt.want)
					}
					if tt.want == locks.Released {
						tt.want = locks.Gone // a second time
					}
				}
			})
		})
	}
}

func TestNothingIsReadWhileNobodyWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := watch(t)
		pause(time.Hour)
		s.mu.Lock()
		if s.scans != 0 {
			t.Errorf("%d scans before anybody looks, want none", s.scans)
		}
		s.mu.Unlock()
		s.see(10 * time.Second)
		s.mu.Lock()
		before := s.scans
		s.mu.Unlock()
		pause(time.Hour)
		s.mu.Lock()
		defer s.mu.Unlock()
		if before < 3 || before > 5 || s.scans-before > 11 {
			t.Errorf("%d scans in 10 s, %d in the hour after, want 3 to 5, and at most 11", before, s.scans-before)
		}
	})
}

func TestAFailedReadIsSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := watch(t)
		s.lock(`{"order": "A1"}`, "processing", 10*time.Minute)
		s.only(4 * time.Second)
		s.mu.Lock()
		s.failing = errors.New("redis is away")
		s.mu.Unlock()
		pause(4 * time.Second)
		synctest.Wait()
		if got := s.Snapshot(t.Context()); got.Error != "redis is away" || len(got.Locks) != 1 {
			t.Errorf("snapshot = %+v, want the error and what was read before", got)
		}
		for range 12 { // pages do not wait for a Redis that is known to be away
			pause(5 * time.Second)
			start := time.Now()
			if got := s.Snapshot(t.Context()); got.Error == "" || time.Since(start) > 0 {
				t.Errorf("snapshot took %v, with the error %q, want the error at once", time.Since(start), got.Error)
			}
		}
		s.mu.Lock()
		s.failing = nil
		s.mu.Unlock()
		s.only(4 * time.Second)
	})
}

func TestMoreLocksThanAreHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := watch(t)
		for i := range locks.MaxLocks + 5 {
			s.Set(fmt.Sprint("qo_", i), "v", until(0), false)
		}
		pause(4 * time.Second)
		if got := s.Snapshot(t.Context()); !got.More || len(got.Locks) != locks.MaxLocks {
			t.Errorf("%d locks, more: %v, want %d and more", len(got.Locks), got.More, locks.MaxLocks)
		}
	})
}
