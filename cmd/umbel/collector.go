package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	garbage      = 64 << 20 // bytes that may gather before the heap is collected
	leastPercent = 10       // of what lives, that may gather however much lives
	collectEvery = 5 * time.Second
)

// tuneCollector bounds the garbage that gathers beside what lives, until ctx ends. By itself, Go lets as much gather as
// lives. Most of what lives here are tasks without pointers, which cost a collection nothing, so it may run more often.
// GOGC in the environment decides if it is set.
func tuneCollector(ctx context.Context) error {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for now := 100; ; {
		metrics.Read(live)
		if p := collectorPercent(live[0].Value.Uint64()); p != now {
			now = p
			debug.SetGCPercent(p)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// collectorPercent returns how much may gather, in percent of what lives, 100 at most.
func collectorPercent(live uint64) int {
	return int(max(min(garbage*100/max(live, 1), 100), leastPercent))
}
