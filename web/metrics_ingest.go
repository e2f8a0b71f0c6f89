package web

import (
	"maps"
	"slices"
	"time"

	"github.com/umbelhq/umbel/internal/prometheus"
	"github.com/umbelhq/umbel/monitor/peers"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

// tasks writes what is known by task name and state.
func (s *scrape) tasks(m view.Metrics) {
	s.Family(prometheus.HistogramKind, "umbel_task_run_seconds", "Run times of tasks that succeeded, as their workers measured them.")
	for _, t := range m.Counted.Tasks {
		if t.Run != nil {
			s.Histogram(t.Run, "task", t.Name)
		}
	}
	s.Family(prometheus.HistogramKind, "umbel_task_wait_seconds", "Time from task-sent, or task-received where that is unknown, to task-started.")
	for _, t := range m.Counted.Tasks {
		if t.Wait != nil {
			s.Histogram(t.Wait, "task", t.Name)
		}
	}
	s.Family(prometheus.Gauge, "umbel_tasks", "Tasks in memory by state. Custom states count as CUSTOM.")
	custom := m.Counts.Tasks
	for _, name := range state.States() {
		s.Add(float64(m.Counts.ByState[name]), "state", string(name))
		custom -= m.Counts.ByState[name]
	}
	s.Add(float64(custom), "state", "CUSTOM")
	s.gauge("umbel_tasks_running", "Tasks that have started and not ended, on workers that are not offline.", float64(m.Counts.Running))
	s.gauge("umbel_tasks_lost", "Unfinished tasks in memory that are not expected to end.", float64(m.Counts.Lost))
}

// workers writes what is known by worker.
func (s *scrape) workers(m view.Metrics) {
	s.Family(prometheus.Gauge, "umbel_workers", "Workers by status.")
	for _, status := range []state.Status{state.Online, state.Late, state.Stopping, state.Offline} {
		s.Add(float64(m.Counts.Workers[status]), "status", string(status))
	}
	s.Family(prometheus.Gauge, "umbel_worker_last_seen_timestamp_seconds", "When the newest event of a worker was received.")
	for _, w := range m.Workers {
		s.Add(float64(w.LastSeenAt)/1e6, "worker", w.Name)
	}
	s.Family(prometheus.Gauge, "umbel_worker_clock_offset_seconds", "How far the wall clock of a worker is most likely ahead of this host's.")
	for _, w := range m.Workers {
		if w.ClockOffsetMicros != nil {
			s.Add(float64(*w.ClockOffsetMicros)/1e6, "worker", w.Name)
		}
	}
	s.Family(prometheus.Gauge, "umbel_worker_clock_offset_low_seconds", "How far it is ahead at least.")
	for _, w := range m.Workers {
		if low := w.ClockOffset.LowSeconds(); low != nil {
			s.Add(*low, "worker", w.Name)
		}
	}
	s.Family(prometheus.Gauge, "umbel_worker_clock_offset_high_seconds", "How far it is ahead at most.")
	for _, w := range m.Workers {
		if high := w.ClockOffset.HighSeconds(); high != nil {
			s.Add(*high, "worker", w.Name)
		}
	}
}

// ingest writes how receiving and folding events does.
func (s *scrape) ingest(h view.Health, m view.Metrics) {
	s.count("umbel_messages_total", "Messages received from the broker.", float64(h.Messages))
	s.count("umbel_events_total", "Events in those messages.", float64(h.Events))
	s.Family(prometheus.Counter, "umbel_rejected_total", "Rejected events and messages by cause.")
	rejected := map[string]uint64{view.CauseSymbols: 0, view.CauseEvents: 0} // never without a series
	maps.Copy(rejected, h.Rejected)
	for _, cause := range slices.Sorted(maps.Keys(rejected)) {
		s.Add(float64(rejected[cause]), "cause", cause)
	}
	s.Family(prometheus.Counter, "umbel_dropped_total", "Messages that never arrived: too_fast were dropped by Redis' client, missed_tasks is an estimate of the tasks that began while there was no connection.")
	s.Add(float64(h.Broker.Loss.Dropped), "cause", "too_fast")
	s.Add(float64(h.Broker.Loss.MissedTasks), "cause", "missed_tasks")
	s.gauge("umbel_tasks_max", "Finished tasks that are held in memory at most, fewer than configured while the memory limit is near.", float64(h.Memory.MaxTasks))
	s.gauge("umbel_text_max_bytes", "Bytes of text of tasks that are held in memory at most, fewer than configured while the memory limit is near.", float64(h.Memory.MaxText))
	s.gauge("umbel_missing_started_events", "task-started events that workers have sent and that were not received so far, at least.", float64(h.MissingStarted))
	s.Family(prometheus.Gauge, "umbel_complete_until_timestamp_seconds", "What workers sent before has been received, unless it is lost.")
	if h.Watermark.Micros != 0 {
		s.Add(float64(h.Watermark.Micros) / 1e6)
	}
	s.count("umbel_late_events_total", "Events of workers that came after umbel_complete_until_timestamp_seconds had passed them.", float64(h.LateEvents))
	s.gauge("umbel_ready", "1 once the history is restored.", truth(h.Ready))
	s.gauge("umbel_restoring", "1 while finished tasks of the history are loaded into memory.", truth(h.Restoring))
	s.gauge("umbel_broker_connected", "1 while events are received.", truth(h.Broker.Connected))
	s.count("umbel_broker_outages_total", "Outages of a broker that keeps no events meanwhile.", float64(h.Broker.Loss.Outages))
	s.gauge("umbel_fold_latency_seconds", "Time from the receipt of the newest batch of messages until it was folded.", h.Latency.Seconds())
	if m.Counted != nil {
		s.histogram("umbel_event_lag_seconds", "Time from an event, by its sender's clock, until it was folded: the newest of each batch of messages.", m.Counted.EventLag)
	}
}

// history writes how writing the history does.
func (s *scrape) history(h view.Health, m view.Metrics) {
	s.nodes(h.Nodes)
	s.gauge("umbel_unsaved_tasks", "Tasks with changes not yet in the history.", float64(h.Store.UnsavedTasks))
	s.gauge("umbel_pending_events", "Events folded and not yet in the history.", float64(h.Store.PendingEvents))
	s.gauge("umbel_backpressure", "1 while so much is pending that nothing more is received.", truth(h.Store.Backpressure))
	failing := 0.0
	if !h.Store.Since.IsZero() {
		failing = s.now().Sub(h.Store.Since).Seconds()
	}
	s.gauge("umbel_history_failing_seconds", "For how long writing the history has failed, 0 if it succeeds.", failing)
	kept := s.backend.History().Health()
	s.gauge("umbel_history_bytes", "Size of the history.", float64(kept.Size))
	s.gauge("umbel_history_unindexed_tasks", "Tasks whose text is not in the text index yet.", float64(kept.Unindexed))
	if m.Counted == nil {
		return
	}
	s.gauge("umbel_journal_pending_bytes", "Size of the events not yet in the history.", float64(m.Journal))
	s.histogram("umbel_history_write_seconds", "Time that a transaction of the history took.", m.Counted.Writes)
	s.histogram("umbel_history_lag_seconds", "Time from a fold until the event was in the history: the oldest of each transaction.", m.Counted.HistoryLag)
	s.count("umbel_history_write_errors_total", "Transactions of the history that failed.", float64(m.Counted.WriteErrors))
}

// peer writes whether this Umbel asks the workers.
func (s *scrape) peer() {
	if s.peers == nil {
		return
	}
	status := s.peers.Status()
	s.gauge("umbel_leader", "1 while this process asks the workers on behalf of all that watch them.", truth(status.Asks()))
	s.gauge("umbel_peers", "Other Umbels that watch the same cluster.", float64(len(status.Peers)))
	s.gauge("umbel_peers_off", "1 if this process does not agree with others on who asks.", truth(status.State == peers.Off))
}

// sockets writes how live updates do.
func (s *scrape) sockets() {
	l := s.live()
	s.gauge("umbel_sockets", "Open live sockets.", float64(l.Sockets))
	s.gauge("umbel_topics", "Pages that are kept rendered for live updates.", float64(l.Topics))
	s.count("umbel_frames_total", "Frames written to sockets.", float64(l.Frames))
	s.count("umbel_frame_bytes_total", "Bytes of those frames, compressed.", float64(l.Bytes))
}

// started is when the process began, nearly.
var started = time.Now() //nolint:gochecknoglobals // constant
