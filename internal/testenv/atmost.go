package testenv

import (
	"testing"
	"time"
)

// AtMost fails the test if do takes more than times as long as usual. It compares the shortest of several runs of both,
// so that neither a slow machine nor a busy one makes it fail.
func AtMost(t testing.TB, times int, usual, do func()) {
	t.Helper()
	measure := func(do func()) time.Duration {
		start := time.Now()
		do()
		return time.Since(start)
	}
	short, long := time.Hour, time.Hour
	for range 20 {
		short, long = min(short, measure(usual)), min(long, measure(do))
		if long <= time.Duration(times)*short {
			return
		}
	}
	t.Errorf("took %v, which is more than %d times %v", long, times, short)
}
