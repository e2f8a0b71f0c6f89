package idempotency_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/idempotency"
)

func TestParseLockValue(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef0123456789abcdef"
	for s, want := range map[string]idempotency.LockValue{
		"processing":                          {State: idempotency.Processing},
		"completed":                           {State: idempotency.Completed},
		"processing:" + token:                 {State: idempotency.Processing, Token: token},
		"completed:" + token + ":a:b":         {State: idempotency.Completed, Token: token, TaskID: "a:b"},
		"processing:" + token + ":7b0c6a3e-1": {State: idempotency.Processing, Token: token, TaskID: "7b0c6a3e-1"},
	} {
		if got, ok := idempotency.ParseLockValue(s); !ok || got != want || got.String() != s {
			t.Errorf("ParseLockValue(%q) = %+v, %v, want %+v", s, got, ok, want)
		}
	}
	for _, s := range []string{
		"", "running", "Processing", "processing:", "processing:" + token[1:], "completed:" + token + ":", "processing:" + strings.ToUpper(token),
		"completed:" + token + ":\xff", "completed:" + token + ":" + strings.Repeat("a", 513), " processing", "processing\n",
	} {
		if got, ok := idempotency.ParseLockValue(s); ok {
			t.Errorf("ParseLockValue(%q) = %+v, want none", s, got)
		}
	}
}

func TestParseLockValueReadsOnlyWhatStringWrites(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringMatching(`(processing|completed)(:[0-9a-f]{32}(:.{0,9})?)?`)).Draw(t, "value")
		if v, ok := idempotency.ParseLockValue(s); ok && v.String() != s {
			t.Fatalf("%q is read as %q", s, v)
		}
	})
}

func TestLocksRunACallOnce(t *testing.T) {
	t.Parallel()
	for name, plain := range map[string]bool{"fenced": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newMemory()
				l := newLocks(t, r, idempotency.LockOptions{Plain: plain})
				first := acquire(t, l, "a")
				skipped(t, l, idempotency.ConcurrentExecution)
				if got := r.ttl("lock:f"); got != 10*time.Minute {
					t.Errorf("TTL = %v, want 10m", got)
				}
				if plain != (r.get("lock:f") == "processing") {
					t.Errorf("value = %q", r.get("lock:f"))
				}
				if err := first.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				second := acquire(t, l, "b")
				if err := second.Complete(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := r.ttl("lock:f"); got != 24*time.Hour {
					t.Errorf("TTL = %v, want 24h", got)
				}
				holder := skipped(t, l, idempotency.AlreadyCompleted)
				if want := map[bool]string{true: "", false: "b"}[plain]; holder.TaskID != want {
					t.Errorf("completed by %q, want %q", holder.TaskID, want)
				}
				pass(24 * time.Hour)
				acquire(t, l, "c")
			})
		})
	}
}

func TestSkippedCallReturnsWhatPythonReturns(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(&idempotency.SkippedError{Reason: idempotency.ConcurrentExecution})
	if want := `{"status":"skipped","reason":"concurrent_execution"}`; err != nil || string(b) != want {
		t.Errorf("got %s, %v, want %s", b, err, want)
	}
}

func TestExpiredLockCannotTouchThatOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newMemory()
		l := newLocks(t, r, idempotency.LockOptions{TTL: time.Minute})
		slow := acquire(t, l, "slow")
		pass(time.Minute)
		if err := slow.Extend(t.Context()); !errors.Is(err, idempotency.ErrLost) {
			t.Errorf("Extend of an expired lock: %v, want ErrLost", err)
		}
		other := acquire(t, l, "other")
		for name, f := range map[string]func(context.Context) error{"Complete": slow.Complete, "Release": slow.Release, "Extend": slow.Extend} {
			if err := f(t.Context()); !errors.Is(err, idempotency.ErrLost) {
				t.Errorf("%s: %v, want ErrLost", name, err)
			}
			if got := r.get("lock:f"); got != other.Value().String() {
				t.Errorf("after %s the key holds %q", name, got)
			}
		}
		if err := errors.Join(other.Complete(t.Context()), other.Complete(t.Context())); err != nil {
			t.Error(err)
		}
		if err := other.Release(t.Context()); !errors.Is(err, idempotency.ErrLost) {
			t.Errorf("Release of what was completed: %v, want ErrLost", err)
		}
	})
}

func TestExpiredLockThatNobodyTookIsCompleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLocks(t, newMemory(), idempotency.LockOptions{TTL: time.Minute})
		slow := acquire(t, l, "slow")
		pass(time.Hour)
		if err := slow.Complete(t.Context()); err != nil {
			t.Error(err)
		}
		skipped(t, l, idempotency.AlreadyCompleted)
	})
}

func TestPlainAndFencedValuesExcludeEachOther(t *testing.T) {
	t.Parallel()
	r := newMemory()
	plain, fenced := newLocks(t, r, idempotency.LockOptions{Plain: true}), newLocks(t, r, idempotency.LockOptions{})
	lock := acquire(t, plain, "")
	skipped(t, fenced, idempotency.ConcurrentExecution)
	if err := lock.Complete(t.Context()); err != nil {
		t.Fatal(err)
	}
	skipped(t, fenced, idempotency.AlreadyCompleted)
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := acquire(t, fenced, "").Complete(t.Context()); err != nil {
		t.Fatal(err)
	}
	skipped(t, plain, idempotency.AlreadyCompleted)
}

func TestUnknownValueStandsForARun(t *testing.T) {
	t.Parallel()
	r := newMemory()
	r.set("lock:f", "something", time.Hour)
	skipped(t, newLocks(t, r, idempotency.LockOptions{}), idempotency.ConcurrentExecution)
}

func TestAcquireSurvivesALostReply(t *testing.T) {
	t.Parallel()
	r := newMemory()
	r.twice = true
	acquire(t, newLocks(t, r, idempotency.LockOptions{}), "a")
}

func TestNewLocksNamesTheOptionThatIsWrong(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]idempotency.LockOptions{
		"TTL -1s: must be at least a millisecond":           {TTL: -time.Second},
		"CompletionTTL 1ns: must be at least a millisecond": {CompletionTTL: 1},
	} {
		if _, err := idempotency.NewLocks(newMemory(), o); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func newLocks(t *testing.T, r idempotency.Redis, o idempotency.LockOptions) *idempotency.Locks {
	t.Helper()
	l, err := idempotency.NewLocks(r, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func acquire(t *testing.T, l *idempotency.Locks, taskID string) *idempotency.Lock {
	t.Helper()
	lock, err := l.Acquire(t.Context(), "f", taskID)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// skipped checks why the call is skipped, and returns who has the key.
func skipped(t *testing.T, l *idempotency.Locks, want idempotency.Reason) idempotency.LockValue {
	t.Helper()
	_, err := l.Acquire(t.Context(), "f", "z")
	e, ok := errors.AsType[*idempotency.SkippedError](err)
	if !ok || e.Reason != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	return e.Holder
}

// pass lets time pass, that of synctest.
func pass(d time.Duration) { <-time.After(d) }
