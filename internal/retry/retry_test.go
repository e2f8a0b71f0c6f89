package retry_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/retry"
)

func TestAfterStaysWithinBounds(t *testing.T) {
	t.Parallel()
	const least, most = 500 * time.Millisecond, 30 * time.Second
	for failures, bound := range map[int]time.Duration{
		0: least, 1: time.Second, 3: 4 * time.Second, 6: most, 1_000_000: most,
	} {
		for range 1000 {
			if got := retry.After(failures, least, most); got < least || got > bound {
				t.Fatalf("wait after %d failures = %v, want %v to %v", failures, got, least, bound)
			}
		}
	}
}
