// Package locks shows the locks by which applications run tasks once: it reads their keys in bounded steps, finds the task
// that holds each, and marks locks that are stuck, too short, or gone while their task runs. It changes nothing but the lock
// that somebody releases.
package locks

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"
)

// Bounds of what is read.
const (
	MaxLocks = 10_000 // keys that are held in memory
	MaxValue = 1_024  // bytes read of a value
)

// DefaultPatterns returns the glob patterns of the keys of the idempotency scheme, of celery-once, and of celery-singleton,
// before and after it had a prefix of its own.
func DefaultPatterns() []string {
	return []string{"lock:celery:exec:*", "qo_*", "celery_singleton_*", "SINGLETONLOCK_*"}
}

// MatchAny reports whether a key matches one of the patterns, which are Redis's globs: a * stands for slashes too.
func MatchAny(patterns []string, key string) bool {
	key = strings.ReplaceAll(key, "/", "\x00")
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(strings.ReplaceAll(p, "/", "\x00"), key)
		return ok
	})
}

// Source is where applications keep their locks. It is safe for concurrent use.
type Source interface {
	// Scan examines some keys and returns those that are locks, perhaps twice. A nil cursor begins; a nil next one says that
	// all keys have been examined.
	Scan(ctx context.Context, at Cursor) (keys []string, next Cursor, err error)
	// Read returns the entries of keys, in their order. Keys that are not those of locks are missing.
	Read(ctx context.Context, keys []string) ([]Entry, error)
	// Release deletes the lock if it is still as expected.
	Release(ctx context.Context, want Expected) (Outcome, error)
	// String is its URL with passwords masked.
	String() string
	// Close releases its resources.
	Close() error
}

// Cursor is where a scan goes on. Only its source knows what it means.
type Cursor []uint64

// Entry is a key as it was read.
type Entry struct {
	Key     string
	Missing bool          // there is no such key
	Other   bool          // its value is not a string
	Value   string        // at most MaxValue bytes
	Long    bool          // the value is longer
	TTL     time.Duration // how long the key remains, negative if it does not expire
}

// Expected is what somebody saw of a lock.
type Expected struct {
	Key   string
	Value string
	// MaxTTL is how long the lock may remain at most: more means that it was taken again since. Negative means that it must
	// not expire.
	MaxTTL time.Duration
}

// Matches reports whether the entry is still the lock that was seen.
func (w Expected) Matches(e Entry) Outcome {
	switch {
	case e.Missing:
		return Gone
	case e.Other, e.Value != w.Value:
		return Changed
	case w.MaxTTL < 0 && e.TTL >= 0, w.MaxTTL >= 0 && (e.TTL < 0 || e.TTL > w.MaxTTL):
		return TakenAgain
	}
	return Released
}

// Outcome is what became of a release.
type Outcome string

// Outcomes. Only Released deletes the lock.
const (
	Released   Outcome = "released"
	Gone       Outcome = "gone"
	Changed    Outcome = "changed"
	TakenAgain Outcome = "taken_again"
	// OtherHolder says that another task holds it now.
	OtherHolder Outcome = "other_holder"
)
