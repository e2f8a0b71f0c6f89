package simulate

import (
	"context"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// minWait bounds how often Run sleeps: messages may be that much late, but never early.
const minWait = time.Millisecond

// Run publishes messages in real time: each when its time has come, and at once if that is past, so a simulation
// that started ten minutes ago begins with ten minutes of history. Run returns nil when ctx or the simulation
// ends, or the error of publish. It is called once.
func (c *Cluster) Run(ctx context.Context, publish func(context.Context, broker.Message) error) error {
	defer close(c.closed)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		d, ok := c.Next()
		if !ok {
			return nil
		}
		if wait := time.Until(d.At); wait > 0 {
			timer.Reset(max(wait, minWait))
			if !c.runCallsUntil(ctx, timer.C) {
				return nil
			}
		}
		if err := publish(ctx, d.Message); err != nil && ctx.Err() == nil {
			return fmt.Errorf("publish event: %w", err)
		}
	}
	return nil
}

// runCallsUntil executes calls from outside until the time for the next message has come. It is false if ctx ends
// first.
func (c *Cluster) runCallsUntil(ctx context.Context, due <-chan time.Time) bool {
	for {
		select {
		case call := <-c.calls:
			call()
		case <-due:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
