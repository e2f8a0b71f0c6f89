package web

import (
	"context"

	"github.com/umbelhq/umbel/internal/prometheus"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

// outbox writes the state of the outbox of commands.
func (s *scrape) outbox(ctx context.Context) {
	if s.commands == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	stats, err := s.commands.OutboxStats(ctx)
	if err != nil {
		s.log.ErrorContext(ctx, "read outbox", "error", err)
		return
	}
	s.Family(prometheus.Gauge, "umbel_outbox_commands", "Commands in the outbox by state.")
	for _, state := range history.CommandStates() {
		s.Add(float64(stats.States[state]), "state", string(state))
	}
	oldest := 0.0
	if stats.States[history.CommandPending] > 0 {
		oldest = s.now().Sub(stats.OldestPending).Seconds()
	}
	s.gauge("umbel_outbox_oldest_pending_seconds", "Age of the oldest pending command.", oldest)
	s.gauge("umbel_outbox_dead_letters", "Dead letters in the outbox.", float64(stats.DeadLetters))
	if s.commands.Relay == nil {
		return
	}
	relay := s.commands.Relay.Status()
	s.gauge("umbel_outbox_breaker_open", "1 while the circuit breaker is open because the broker is unavailable.", truth(relay.BreakerOpen))
	s.count("umbel_outbox_sent_total", "Commands accepted by the broker.", float64(relay.Sent))
	s.count("umbel_outbox_retried_total", "Failed attempts that will be retried.", float64(relay.Retried))
	s.count("umbel_outbox_deferred_total", "Attempts postponed because the broker was unavailable.", float64(relay.Deferred))
	s.count("umbel_outbox_died_total", "Commands that became dead letters.", float64(relay.DeadLettered))
	s.count("umbel_outbox_reclaimed_total", "Commands left in flight by a crash and claimed again.", float64(relay.Reclaimed))
}

// appOutboxes writes the outboxes of applications as they were read last: a scrape reads nothing.
func (s *scrape) appOutboxes() {
	if s.outboxes == nil {
		return
	}
	all := s.outboxes.Snapshot()
	s.Family(prometheus.Gauge, "umbel_app_outbox_up", "1 while the outbox of an application can be read.")
	for i := range all {
		s.Add(truth(all[i].Err == nil && !all[i].ReadAt.IsZero()), "outbox", all[i].Name)
	}
	family := func(name, help string, value func(o *outboxwatch.Outbox) float64) {
		s.Family(prometheus.Gauge, "umbel_app_outbox_"+name, help)
		for i := range all {
			if o := &all[i]; !o.ReadAt.IsZero() && o.Err == nil { // old numbers would look like new ones
				s.Add(value(o), "outbox", o.Name)
			}
		}
	}
	in := func(state outboxwatch.State) func(o *outboxwatch.Outbox) float64 {
		return func(o *outboxwatch.Outbox) float64 { return float64(o.Stats.States[state].N) }
	}
	family("ready", "Rows that the application's relay may take, counted up to 100,000.", func(o *outboxwatch.Outbox) float64 { return float64(o.Stats.Ready().N) })
	family("in_flight", "Rows that the relay has taken.", in(outboxwatch.InFlight))
	family("deferred", "Rows that wait for another attempt.", in(outboxwatch.Deferred))
	family("other_schema", "Rows that no relay takes because of their schema_version.", in(outboxwatch.OtherSchema))
	family("dead_letters", "Dead letters of the application, counted up to 100,000.", func(o *outboxwatch.Outbox) float64 { return float64(o.Stats.DeadLetters.N) })
	family("oldest_ready_seconds", "Age of the oldest row that the relay may take.", func(o *outboxwatch.Outbox) float64 {
		if o.Stats.OldestReady.IsZero() {
			return 0
		}
		return o.Stats.Now.Sub(o.Stats.OldestReady).Seconds()
	})
	family("relay_stopped", "1 while rows are ready and none has been taken for two minutes.", func(o *outboxwatch.Outbox) float64 { return truth(o.Relay.Stopped) })
}
