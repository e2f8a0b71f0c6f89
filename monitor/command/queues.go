package command

import (
	"context"
	"maps"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// newQueues returns a watcher of the queues that the broker, workers and events name.
func (s *Service) newQueues(o Options) (*queues.Watcher, error) {
	counters := func() map[string]queues.Counters {
		byQueue, unrouted := o.QueueCounters()
		return queues.RouteCounters(byQueue, unrouted, s.Inspector.PeekTopology().Queues)
	}
	if o.QueueCounters == nil {
		counters = nil
	}
	return queues.New(queues.Options{
		Stats: s.Client.QueueStats, Consumers: s.consumers, ConsumersComplete: s.topologyComplete, Counters: counters,
		HoldsETA: s.anyHeld, Hidden: o.HiddenQueues, Now: o.Now,
	})
}

// consumers returns the workers that consume from each queue, as they reported, and the queues of tasks without any.
func (s *Service) consumers() map[string][]string {
	consumers := make(map[string][]string)
	s.tasks.View(func(c state.View) {
		for name := range c.Counts().ByQueue {
			consumers[name] = nil
		}
	})
	maps.Copy(consumers, s.Inspector.PeekTopology().Queues)
	return consumers
}

// topologyComplete reports whether every worker has reported what it consumes from.
func (s *Service) topologyComplete() bool {
	t := s.Inspector.PeekTopology()
	return !t.At.IsZero() && len(t.Missing) == 0
}

// anyHeld reports whether workers have received tasks whose ETA is after a moment.
func (s *Service) anyHeld(ctx context.Context, after time.Time) bool {
	q, err := query.Parse("state:received eta:>" + after.UTC().Format(time.RFC3339))
	if err != nil {
		return false
	}
	page, err := s.tasks.Tasks(ctx, history.TaskRequest{Query: q, Limit: 1, Now: after})
	return err == nil && len(page.Tasks) > 0
}
