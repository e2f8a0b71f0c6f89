package web

import (
	"github.com/umbelhq/umbel/internal/prometheus"
	"github.com/umbelhq/umbel/monitor/metrics"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

// flower writes the families that Flower has, with its names, labels and helps.
func (s *scrape) flower(m view.Metrics) {
	series := m.Counted.Series
	s.Family(prometheus.Counter, "flower_events_total", "Number of events")
	for i := range series {
		for _, c := range series[i].Events {
			labels := []string{"task", series[i].Task, "type", c.Type, "worker", series[i].Worker}
			s.Add(float64(c.Events), labels...)
			s.Created(series[i].Created, labels...)
		}
	}
	s.Family(prometheus.HistogramKind, "flower_task_runtime_seconds", "Task runtime")
	for i := range series {
		if c := &series[i]; c.Runtime != nil {
			s.Histogram(c.Runtime, "task", c.Task, "worker", c.Worker)
			s.Created(c.Created, "task", c.Task, "worker", c.Worker)
		}
	}
	s.Family(prometheus.Gauge, "flower_task_prefetch_time_seconds", "The time the task spent waiting at the celery worker to be executed.")
	for i := range series {
		if c := &series[i]; c.Started {
			s.Add(c.PrefetchSeconds, "task", c.Task, "worker", c.Worker)
		}
	}
	s.prefetched(m)
	s.Family(prometheus.Gauge, "flower_worker_online", "Worker online status")
	for _, w := range m.Workers {
		s.Add(truth(w.Status == state.Online || w.Status == state.Late), "worker", w.Name)
	}
	s.Family(prometheus.Gauge, "flower_worker_number_of_currently_executing_tasks", "Number of tasks currently executing at a worker")
	for _, w := range m.Workers {
		if w.Active == nil {
			continue
		}
		active := float64(*w.Active)
		if w.Status == state.Offline {
			active = 0
		}
		s.Add(active, "worker", w.Name)
	}
}

// prefetched writes the tasks that are prefetched now, and 0 for the pairs that had some before.
func (s *scrape) prefetched(m view.Metrics) {
	now := make(map[metrics.Labels]int, len(m.Prefetched))
	for _, p := range m.Prefetched {
		now[m.Counted.Labels(p.Worker, p.Name)] += p.Tasks
	}
	s.Family(prometheus.Gauge, "flower_worker_prefetched_tasks", "Number of tasks of given type prefetched at a worker")
	for i := range m.Counted.Series {
		c := &m.Counted.Series[i]
		at := metrics.Labels{Task: c.Task, Worker: c.Worker}
		if n := now[at]; c.Received || n > 0 {
			s.Add(float64(n), "task", c.Task, "worker", c.Worker)
		}
		delete(now, at)
	}
	for at, n := range now { // received by an earlier process
		s.Add(float64(n), "task", at.Task, "worker", at.Worker)
	}
}
