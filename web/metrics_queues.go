package web

import (
	"github.com/umbelhq/umbel/internal/prometheus"
	"github.com/umbelhq/umbel/monitor/metrics"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/view"
)

// queues writes the queues as they were polled last: a scrape polls nothing.
func (s *scrape) queues(m view.Metrics) {
	if s.commands == nil {
		return
	}
	var list []queues.Queue
	for _, q := range s.commands.Queues.Peek().Queues {
		if !q.Hidden {
			list = append(list, q)
		}
	}
	family := func(name, help string, value func(q *queues.Queue) (float64, bool)) {
		s.Family(prometheus.Gauge, name, help)
		for i := range list {
			if v, ok := value(&list[i]); ok {
				s.Add(v, "queue", list[i].Name)
			}
		}
	}
	family("umbel_queue_ready", "Messages waiting in a queue.", func(q *queues.Queue) (float64, bool) { return whole(q.Ready) })
	family("umbel_queue_unacked", "Messages delivered to workers and not acknowledged.", func(q *queues.Queue) (float64, bool) { return whole(q.Unacked) })
	family("umbel_queue_consumers", "Consumers of a queue.", func(q *queues.Queue) (float64, bool) { return whole(q.Consumers) })
	family("umbel_queue_oldest_seconds", "Estimate of how long the next message has waited, at least.", oldest)
	family("umbel_queue_arrivals_per_second", "Messages that came in a second, over the last minute.", func(q *queues.Queue) (float64, bool) { return known(q.InRate) })
	family("umbel_queue_departures_per_second", "Messages that left in a second, over the last minute.", func(q *queues.Queue) (float64, bool) { return known(q.OutRate) })
	s.needed(list, m)
}

// needed writes how many worker processes the queues need.
func (s *scrape) needed(list []queues.Queue, m view.Metrics) {
	if m.Counted == nil {
		return
	}
	now, total, any := s.now(), 0.0, false
	s.Family(prometheus.Gauge, "umbel_queue_mean_run_seconds", "Mean run time of the tasks of a queue that succeeded in the last 10 minutes.")
	for i := range list {
		if mean, ok := m.Counted.MeanRunTime(list[i].Name, list[i].Workers, now); ok {
			s.Add(mean, "queue", list[i].Name)
		}
	}
	s.Family(prometheus.Gauge, "umbel_queue_workers_needed", "Worker processes that a queue needs: arrivals per second × mean run time + ready × mean run time / target drain time.")
	for i := range list {
		q := &list[i]
		mean, ok := m.Counted.MeanRunTime(q.Name, q.Workers, now)
		ready, _ := whole(q.Ready)
		arrivals, _ := known(q.InRate)
		if !ok && (q.Ready == nil || *q.Ready > 0 || arrivals > 0) {
			continue // there is work, and nothing tells how long it takes
		}
		n := metrics.WorkersNeeded(arrivals, mean, int64(ready), s.queueDrain)
		s.Add(n, "queue", q.Name)
		total, any = total+n, true
	}
	if any {
		s.gauge("umbel_workers_needed", "Worker processes that all queues together need.", total)
	}
}

func whole(n *int64) (float64, bool) {
	if n == nil {
		return 0, false
	}
	return float64(*n), true
}

func known(v *float64) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return *v, true
}

// oldest is the age of the next message: 0 of an empty queue.
func oldest(q *queues.Queue) (float64, bool) {
	switch {
	case q.Age != nil:
		return q.Age.Seconds(), true
	case q.AgeAtLeast != nil:
		return q.AgeAtLeast.Seconds(), true
	case q.Ready != nil && *q.Ready == 0:
		return 0, true
	}
	return 0, false
}
