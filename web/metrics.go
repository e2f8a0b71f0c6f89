package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
)

// metrics serves numbers about Umbel itself in the format of Prometheus. They are read when they are asked for.
func metrics(b Backend, o *command.Service, now func() time.Time, log *slog.Logger) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{backend: b, commands: o, now: now, log: log}) // a new registry has no other
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// collector reads the backend for each scrape.
type collector struct {
	backend  Backend
	commands *command.Service // may be nil, and so may its Relay
	now      func() time.Time
	log      *slog.Logger
}

// Describe describes nothing: which labels there are depends on what is seen.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	h := c.backend.Health()
	count(out, "umbel_messages_total", "Messages received from the broker.", float64(h.Messages))
	count(out, "umbel_events_total", "Events in those messages.", float64(h.Events))
	for cause, n := range h.Rejected {
		count(out, "umbel_rejected_total", "Rejected events and messages by cause.", float64(n), "cause", cause)
	}
	gauge(out, "umbel_ready", "1 once the history is restored.", truth(h.Ready))
	gauge(out, "umbel_broker_connected", "1 while events are received.", truth(h.Broker.Connected))
	gauge(out, "umbel_unsaved_tasks", "Tasks with changes not yet in the history.", float64(h.Store.UnsavedTasks))
	c.outbox(out)
	c.queues(out)
}

func (c *collector) outbox(out chan<- prometheus.Metric) {
	if c.commands == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
	defer cancel()
	stats, err := c.commands.OutboxStats(ctx)
	if err != nil {
		c.log.ErrorContext(ctx, "read outbox", "error", err)
		return
	}
	for _, state := range history.CommandStates() {
		gauge(out, "umbel_outbox_commands", "Commands in the outbox by state.", float64(stats.States[state]), "state", string(state))
	}
	oldest := 0.0
	if stats.States[history.CommandPending] > 0 {
		oldest = c.now().Sub(stats.OldestPending).Seconds()
	}
	gauge(out, "umbel_outbox_oldest_pending_seconds", "Age of the pending command longest.", oldest)
	gauge(out, "umbel_outbox_dead_letters", "Dead letters in the outbox.", float64(stats.DeadLetters))
	if c.commands.Relay == nil {
		return
	}
	relay := c.commands.Relay.Status()
	gauge(out, "umbel_outbox_breaker_open", "1 while the circuit breaker is open because the broker is unavailable.", truth(relay.BreakerOpen))
	count(out, "umbel_outbox_sent_total", "Commands accepted by the broker.", float64(relay.Sent))
	count(out, "umbel_outbox_retried_total", "Failed attempts that will be retried.", float64(relay.Retried))
	count(out, "umbel_outbox_deferred_total", "Attempts postponed because the broker was unavailable.", float64(relay.Deferred))
	count(out, "umbel_outbox_died_total", "Commands that became dead letters.", float64(relay.DeadLettered))
	count(out, "umbel_outbox_reclaimed_total", "Commands left in flight by a crash and claimed again.", float64(relay.Reclaimed))
}

// queues tells what was last seen of queues: a scrape is no reason to look at them more often.
func (c *collector) queues(out chan<- prometheus.Metric) {
	if c.commands == nil {
		return
	}
	for _, q := range c.commands.Queues.Peek().Queues {
		if q.Hidden {
			continue
		}
		number := func(name, help string, n *int64) {
			if n != nil {
				gauge(out, name, help, float64(*n), "queue", q.Name)
			}
		}
		number("umbel_queue_ready", "Messages waiting in a queue.", q.Ready)
		number("umbel_queue_unacked", "Messages delivered to workers and not acknowledged.", q.Unacked)
		number("umbel_queue_consumers", "Consumers of a queue.", q.Consumers)
	}
}

func count(out chan<- prometheus.Metric, name, help string, value float64, label ...string) {
	send(out, prometheus.CounterValue, name, help, value, label)
}

func gauge(out chan<- prometheus.Metric, name, help string, value float64, label ...string) {
	send(out, prometheus.GaugeValue, name, help, value, label)
}

// send sends one number. label is empty, or a name and a value.
func send(out chan<- prometheus.Metric, kind prometheus.ValueType, name, help string, value float64, label []string) {
	names, values := label[:len(label)/2], label[len(label)/2:]
	out <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, value, values...)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
