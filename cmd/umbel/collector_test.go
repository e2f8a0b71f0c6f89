package main

import "testing"

func TestGarbageIsBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 100}, {64 << 20, 100}, {128 << 20, 50}, {512 << 20, 12}, {8 << 30, 10}} {
		if got := collectorPercent(c.live); got != c.want {
			t.Errorf("percent beside %d bytes that live = %d, want %d", c.live, got, c.want)
		}
	}
}
