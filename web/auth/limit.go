package auth

import (
	"sync"
	"time"
)

// Limits of attempts to sign in that fail.
const (
	addressBurst, addressEvery = 10, 6 * time.Second
	userBurst, userEvery       = 30, 10 * time.Second
	// maxLimited is how many addresses and users are remembered.
	maxLimited = 10_000
)

// limiter counts attempts by name: so many at once, then one after each interval. Names beyond maxLimited push out those used
// longest ago.
type limiter struct {
	burst int
	every time.Duration

	mu       sync.Mutex
	newer    map[string]time.Time // when all attempts of a name will be forgotten
	previous map[string]time.Time
}

func newLimiter(burst int, every time.Duration) *limiter {
	return &limiter{burst: burst, every: every, newer: make(map[string]time.Time)}
}

// wait returns how long the next attempt has to wait.
func (l *limiter) wait(name string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.until(name, now).Sub(now)-time.Duration(l.burst-1)*l.every, 0)
}

// take counts an attempt. If there were too many, it returns how long to wait.
func (l *limiter) take(name string, now time.Time) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := l.until(name, now)
	if wait = until.Sub(now) - time.Duration(l.burst-1)*l.every; wait > 0 {
		return wait
	}
	l.set(name, until.Add(l.every))
	return 0
}

// back takes an attempt back that has succeeded.
func (l *limiter) back(name string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set(name, l.until(name, now).Add(-l.every))
}

// has reports whether attempts of a name are remembered.
func (l *limiter) has(name string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until(name, now).After(now)
}

func (l *limiter) until(name string, now time.Time) time.Time {
	until, ok := l.newer[name]
	if !ok {
		until = l.previous[name]
	}
	if until.Before(now) {
		return now
	}
	return until
}

func (l *limiter) set(name string, until time.Time) {
	if len(l.newer) >= maxLimited/2 {
		l.previous, l.newer = l.newer, make(map[string]time.Time)
	}
	l.newer[name] = until
}
