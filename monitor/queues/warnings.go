package queues

import (
	"context"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// warnings are sentences about all queues.
func (w *Watcher) warnings(ctx context.Context, s Snapshot) []string {
	limit := s.Broker.VisibilityTimeout
	if w.options.HoldsETA == nil || limit == nil || !w.options.HoldsETA(ctx, s.At.Add(*limit)) {
		return nil
	}
	return []string{fmt.Sprintf("Workers hold tasks for longer than the visibility timeout of %s: "+
		"the broker redelivers them each time it passes, and they may run more than once.", formatDuration(*limit))}
}

// warnings are sentences about one queue.
func (q *Queue) warnings(at time.Time, broker broker.Info) []string {
	if q.Error != "" {
		return nil
	}
	if q.Missing {
		return []string{"The broker has no queue of this name: what is published to it is lost."}
	}
	var list []string
	waiting := ""
	if positive(q.Ready) {
		waiting = ", and " + waits(*q.Ready)
	}
	switch {
	case q.Consumers != nil && *q.Consumers == 0:
		list = append(list, "It has no consumer"+waiting+".")
	case q.Consumers == nil && !q.WorkersKnown:
		list = append(list, "Its consumers are unknown: the broker does not report them, and not all workers have replied.")
	case q.Consumers == nil && len(q.Workers) == 0:
		list = append(list, "No worker reports consuming from it"+waiting+".")
	}
	if q.RedeliveredAt != nil && q.RedeliveredAt.Before(at) {
		list = append(list, fmt.Sprintf("A message has been unacknowledged for longer than the visibility timeout of %s: "+
			"another worker receives it, even if the first is running it.", formatDuration(*broker.VisibilityTimeout)))
	}
	return list
}

func waits(n int64) string {
	if n == 1 {
		return "1 message waits"
	}
	return fmt.Sprintf("%d messages wait", n)
}

// formatDuration formats a duration in its two greatest units.
func formatDuration(d time.Duration) string {
	const day = 24 * time.Hour
	for _, unit := range []struct {
		size, part     time.Duration
		name, partName string
	}{
		{day, time.Hour, "d", "h"}, {time.Hour, time.Minute, "h", "min"}, {time.Minute, time.Second, "min", "s"},
	} {
		if d < unit.size {
			continue
		}
		text := fmt.Sprintf("%d %s", d/unit.size, unit.name)
		if rest := d % unit.size / unit.part; rest > 0 {
			text += fmt.Sprintf(" %d %s", rest, unit.partName)
		}
		return text
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
