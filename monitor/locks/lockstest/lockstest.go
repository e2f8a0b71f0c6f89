// Package lockstest is the conformance suite of sources of locks.
package lockstest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/locks"
)

// Store is where a test writes locks as an application does.
type Store interface {
	Set(t *testing.T, key, value string, ttl time.Duration) // forever if ttl is 0
	Get(t *testing.T, key string) (value string, ok bool)
}

// Run checks a source whose patterns are locks.DefaultPatterns, and which is empty.
func Run(t *testing.T, s locks.Source, store Store) {
	t.Run("Scan", func(t *testing.T) { testScan(t, s, store) })
	t.Run("Read", func(t *testing.T) { testRead(t, s, store) })
	t.Run("Release", func(t *testing.T) { testRelease(t, s, store) })
}

// scan returns all keys, sorted, each once.
func scan(t *testing.T, s locks.Source) []string {
	t.Helper()
	var all []string
	var at locks.Cursor
	for {
		keys, next, err := s.Scan(t.Context(), at)
		if err != nil {
			t.Fatalf("Scan: %v", err)
		}
		all = append(all, keys...)
		if at = next; at == nil {
			slices.Sort(all)
			return slices.Compact(all)
		}
	}
}

func testScan(t *testing.T, s locks.Source, store Store) {
	if got := scan(t, s); len(got) > 0 {
		t.Fatalf("keys = %q, want none", got)
	}
	want := []string{"SINGLETONLOCK_1", "celery_singleton_1", "lock:celery:exec:a:1", "qo_a_x-1"}
	for _, key := range append(slices.Clone(want), "celery-task-meta-1", "lock:other", "qo") {
		store.Set(t, key, "x", 0)
	}
	if got := scan(t, s); !slices.Equal(got, want) {
		t.Errorf("keys = %q, want %q", got, want)
	}
}

func testRead(t *testing.T, s locks.Source, store Store) {
	long := strings.Repeat("x", locks.MaxValue+1)
	store.Set(t, "qo_forever", "v\x00\xff", 0)
	store.Set(t, "qo_minute", "v", time.Minute)
	store.Set(t, "qo_long", long, 0)
	got, err := s.Read(t.Context(), []string{"qo_minute", "qo_none", "qo_forever", "qo_long"})
	if err != nil || len(got) != 4 {
		t.Fatalf("Read = %v, %v, want four entries", got, err)
	}
	if e := got[0]; e.Key != "qo_minute" || e.Value != "v" || e.TTL <= 0 || e.TTL > time.Minute || e.Missing {
		t.Errorf("with a TTL: %+v", e)
	}
	if e := got[1]; !e.Missing {
		t.Errorf("without a key: %+v, want it missing", e)
	}
	if e := got[2]; e.Value != "v\x00\xff" || e.TTL >= 0 || e.Long || e.Missing {
		t.Errorf("without a TTL: %+v", e)
	}
	store.Set(t, "celery-task-meta-1", "secret", 0)
	store.Set(t, "qo_a/b", "v", 0)
	beside, err := s.Read(t.Context(), []string{"celery-task-meta-1", "qo_a/b", "celery-task-meta-1"})
	if err != nil || len(beside) != 3 || !beside[0].Missing || beside[0].Value != "" || beside[1].Value != "v" || !beside[2].Missing {
		t.Errorf("beside a key that is no lock: %+v, %v, want only the lock", beside, err)
	}
	if e := got[3]; !e.Long || e.Value != long[:locks.MaxValue] {
		t.Errorf("long: long %v, %d bytes, want %d", e.Long, len(e.Value), locks.MaxValue)
	}
}

func testRelease(t *testing.T, s locks.Source, store Store) {
	for name, tt := range map[string]struct {
		value string
		ttl   time.Duration
		want  locks.Expected
		is    locks.Outcome
	}{
		"as seen":             {"v", time.Minute, locks.Expected{Value: "v", MaxTTL: time.Minute}, locks.Released},
		"older than seen":     {"v", time.Second * 30, locks.Expected{Value: "v", MaxTTL: time.Minute}, locks.Released},
		"taken again":         {"v", time.Minute, locks.Expected{Value: "v", MaxTTL: 50 * time.Second}, locks.TakenAgain},
		"without TTL now":     {"v", 0, locks.Expected{Value: "v", MaxTTL: time.Minute}, locks.TakenAgain},
		"without TTL":         {"v", 0, locks.Expected{Value: "v", MaxTTL: -1}, locks.Released},
		"with TTL now":        {"v", time.Minute, locks.Expected{Value: "v", MaxTTL: -1}, locks.TakenAgain},
		"another value":       {"w", time.Minute, locks.Expected{Value: "v", MaxTTL: time.Minute}, locks.Changed},
		"a longer value":      {"vv", time.Minute, locks.Expected{Value: "v", MaxTTL: time.Minute}, locks.Changed},
		"bytes that are text": {"\xff", time.Minute, locks.Expected{Value: "\xff", MaxTTL: time.Minute}, locks.Released},
		"gone":                {"", 0, locks.Expected{Value: "v", MaxTTL: -1}, locks.Gone},
	} {
		t.Run(name, func(t *testing.T) {
			tt.want.Key = "qo_release " + name
			if tt.value != "" {
				store.Set(t, tt.want.Key, tt.value, tt.ttl)
			}
			got, err := s.Release(context.Background(), tt.want)
			if err != nil || got != tt.is {
				t.Fatalf("Release = %q, %v, want %q", got, err, tt.is)
			}
			_, there := store.Get(t, tt.want.Key)
			if want := tt.is == locks.Changed || tt.is == locks.TakenAgain; there != want {
				t.Errorf("the lock is there: %v, want %v", there, want)
			}
		})
	}
}
