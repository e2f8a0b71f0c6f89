package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/state/query"
)

// queueTimeout bounds reading the state of a queue for a preview.
const queueTimeout = 2 * time.Second

// problem is why a task would not run. err is set if it is refused unless forced.
type problem struct {
	err     *Error
	warning Warning
}

// refuse returns a problem that refuses a task.
func refuse(e *Error) problem {
	message := strings.ToUpper(e.Message[:1]) + e.Message[1:]
	if e.Nearest != "" {
		message += "; the nearest is " + e.Nearest
	}
	return problem{err: e, warning: Warning{Message: message + ".", Severe: true}}
}

// placement returns the problems of running a task from a queue: no consumer, or none that has registered it.
func placement(t remote.Topology, name, queue string) []problem {
	var list []problem
	switch {
	case len(t.Expected) == 0:
		return []problem{refuse(&Error{Kind: Conflict, Message: "no worker is online"})}
	case len(t.Tasks) == 0 && len(t.Queues) == 0:
		return []problem{refuse(&Error{Kind: Conflict, Message: "no worker has reported its tasks and queues"})}
	case len(t.Missing) >= len(t.Expected):
		list = append(list, problem{warning: Warning{Message: "No worker replies now: this is based on earlier reports."}})
	}
	capable, consumers := t.Tasks[name], t.Queues[queue]
	if len(capable) == 0 {
		list = append(list, refuse(&Error{
			Kind: NotFound, Field: "name", Message: "no worker that replied has registered task " + name,
			Nearest: query.Nearest(name, keys(t.Tasks)),
		}))
	}
	if len(consumers) == 0 {
		list = append(list, refuse(&Error{
			Kind: Conflict, Field: "queue", Message: "no worker that replied consumes from queue " + queue,
			Nearest: query.Nearest(queue, keys(t.Queues)),
		}))
	}
	if len(capable) == 0 || len(consumers) == 0 {
		return list
	}
	lack := slices.DeleteFunc(slices.Clone(consumers), func(worker string) bool { return slices.Contains(capable, worker) })
	if len(lack) == 0 {
		return list
	}
	slices.Sort(lack)
	message := fmt.Sprintf("%s from queue %s without having registered task %s: it discards what it receives of it.",
		plural(lack, "consumes", "consume"), queue, name)
	return append(list, problem{warning: Warning{Message: message, Severe: true}})
}

// queueStats reads the state of a queue, false if the broker cannot be reached.
func (s *Service) queueStats(ctx context.Context, queue string) (broker.QueueStats, bool) {
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	stats, err := s.Client.QueueStats(ctx, []string{queue})
	return stats, err == nil
}

// found returns the queue of a name.
func found(s broker.QueueStats, queue string) (broker.Queue, bool) {
	i := slices.IndexFunc(s.Queues, func(q broker.Queue) bool { return q.Name == queue })
	if i < 0 {
		return broker.Queue{}, false
	}
	return s.Queues[i], true
}

// missing returns the problem that there is no such queue.
func missing(s broker.QueueStats, t remote.Topology, queue string) []problem {
	q, ok := found(s, queue)
	if !ok || !q.Missing || len(t.Queues[queue]) > 0 {
		return nil
	}
	return []problem{refuse(&Error{
		Kind: Conflict, Field: "queue", Message: "the broker has no queue " + queue,
		Nearest: query.Nearest(queue, keys(t.Queues)),
	})}
}

// brokerWarnings warns of how the broker treats priorities and ETAs.
func brokerWarnings(s broker.QueueStats, p taskPayload, now time.Time) []Warning {
	var list warnings
	redis := s.Broker.Kind == "Redis"
	if timeout := s.Broker.VisibilityTimeout; redis && timeout != nil && p.ETA != nil && p.ETA.Sub(now) > *timeout {
		list.warn(true, "Its ETA lies beyond the visibility timeout of %s: Redis delivers it to further workers meanwhile, "+
			"and it may run more than once.", formatDuration(*timeout))
	}
	if p.Priority == nil {
		return list
	}
	q, _ := found(s, p.Queue)
	switch {
	case redis:
		list.warn(false, "On Redis priority 0 is the most urgent, and 9 the least.")
	case q.MaxPriority != nil && *q.MaxPriority > 0:
		list.warn(false, "On RabbitMQ the greater priority is the more urgent: here up to %d.", *q.MaxPriority)
	default:
		list.warn(false, "RabbitMQ heeds the priority only if the queue was declared with x-max-priority; there 9 is more urgent than 0.")
	}
	return list
}
