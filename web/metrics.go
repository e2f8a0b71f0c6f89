package web

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

// metrics serves numbers about Umbel itself in the text format of Prometheus.
func metrics(b Backend, o *command.Service, apps *outboxwatch.Watcher, now func() time.Time, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &collector{backend: b, commands: o, appOutboxes: apps, now: now, log: log, families: map[string][]byte{}}
		c.collect(r.Context())
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		for _, name := range slices.Sorted(maps.Keys(c.families)) {
			_, _ = w.Write(c.families[name])
		}
	})
}

// collector collects the metrics of one scrape.
type collector struct {
	backend  Backend
	commands *command.Service // may be nil, and so may its Relay
	// appOutboxes may be nil.
	appOutboxes *outboxwatch.Watcher
	now         func() time.Time
	log         *slog.Logger
	families    map[string][]byte // the lines of each metric by its name
}

func (c *collector) collect(ctx context.Context) {
	h := c.backend.Health()
	c.count("umbel_messages_total", "Messages received from the broker.", float64(h.Messages))
	c.count("umbel_events_total", "Events in those messages.", float64(h.Events))
	for _, cause := range slices.Sorted(maps.Keys(h.Rejected)) {
		c.count("umbel_rejected_total", "Rejected events and messages by cause.", float64(h.Rejected[cause]), "cause", cause)
	}
	c.gauge("umbel_ready", "1 once the history is restored.", truth(h.Ready))
	c.gauge("umbel_broker_connected", "1 while events are received.", truth(h.Broker.Connected))
	c.gauge("umbel_unsaved_tasks", "Tasks with changes not yet in the history.", float64(h.Store.UnsavedTasks))
	c.outbox(ctx)
	c.appOutboxMetrics()
	c.queues()
}

func (c *collector) outbox(ctx context.Context) {
	if c.commands == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	stats, err := c.commands.OutboxStats(ctx)
	if err != nil {
		c.log.ErrorContext(ctx, "read outbox", "error", err)
		return
	}
	for _, state := range history.CommandStates() {
		c.gauge("umbel_outbox_commands", "Commands in the outbox by state.", float64(stats.States[state]), "state", string(state))
	}
	oldest := 0.0
	if stats.States[history.CommandPending] > 0 {
		oldest = c.now().Sub(stats.OldestPending).Seconds()
	}
	c.gauge("umbel_outbox_oldest_pending_seconds", "Age of the oldest pending command.", oldest)
	c.gauge("umbel_outbox_dead_letters", "Dead letters in the outbox.", float64(stats.DeadLetters))
	if c.commands.Relay == nil {
		return
	}
	relay := c.commands.Relay.Status()
	c.gauge("umbel_outbox_breaker_open", "1 while the circuit breaker is open because the broker is unavailable.", truth(relay.BreakerOpen))
	c.count("umbel_outbox_sent_total", "Commands accepted by the broker.", float64(relay.Sent))
	c.count("umbel_outbox_retried_total", "Failed attempts that will be retried.", float64(relay.Retried))
	c.count("umbel_outbox_deferred_total", "Attempts postponed because the broker was unavailable.", float64(relay.Deferred))
	c.count("umbel_outbox_died_total", "Commands that became dead letters.", float64(relay.DeadLettered))
	c.count("umbel_outbox_reclaimed_total", "Commands left in flight by a crash and claimed again.", float64(relay.Reclaimed))
}

// appOutboxMetrics collects the outboxes of applications as they were read last: a scrape reads nothing.
func (c *collector) appOutboxMetrics() {
	if c.appOutboxes == nil {
		return
	}
	for _, o := range c.appOutboxes.Snapshot() {
		c.gauge("umbel_app_outbox_up", "1 while the outbox of an application can be read.", truth(o.Err == nil && !o.ReadAt.IsZero()), "outbox", o.Name)
		if o.ReadAt.IsZero() || o.Err != nil {
			continue // old numbers would look like new ones
		}
		number := func(name, help string, n int) {
			c.gauge("umbel_app_outbox_"+name, help, float64(n), "outbox", o.Name)
		}
		number("ready", "Rows that the application's relay may take, counted up to 100,000.", o.Stats.Ready().N)
		number("in_flight", "Rows that the relay has taken.", o.Stats.States[outboxwatch.InFlight].N)
		number("deferred", "Rows that wait for another attempt.", o.Stats.States[outboxwatch.Deferred].N)
		number("other_schema", "Rows that no relay takes because of their schema_version.", o.Stats.States[outboxwatch.OtherSchema].N)
		number("dead_letters", "Dead letters of the application, counted up to 100,000.", o.Stats.DeadLetters.N)
		oldest := 0.0
		if !o.Stats.OldestReady.IsZero() {
			oldest = o.Stats.Now.Sub(o.Stats.OldestReady).Seconds()
		}
		c.gauge("umbel_app_outbox_oldest_ready_seconds", "Age of the oldest row that the relay may take.", oldest, "outbox", o.Name)
		c.gauge("umbel_app_outbox_relay_stopped", "1 while rows are ready and none has been taken for two minutes.", truth(o.Relay.Stopped), "outbox", o.Name)
	}
}

// queues collects the queues as they were polled last: a scrape polls nothing.
func (c *collector) queues() {
	if c.commands == nil {
		return
	}
	for _, q := range c.commands.Queues.Peek().Queues {
		if q.Hidden {
			continue
		}
		number := func(name, help string, n *int64) {
			if n != nil {
				c.gauge(name, help, float64(*n), "queue", q.Name)
			}
		}
		number("umbel_queue_ready", "Messages waiting in a queue.", q.Ready)
		number("umbel_queue_unacked", "Messages delivered to workers and not acknowledged.", q.Unacked)
		number("umbel_queue_consumers", "Consumers of a queue.", q.Consumers)
	}
}

func (c *collector) count(name, help string, value float64, label ...string) {
	c.add("counter", name, help, value, label)
}

func (c *collector) gauge(name, help string, value float64, label ...string) {
	c.add("gauge", name, help, value, label)
}

// add adds a sample. label is empty, or a name and a value.
func (c *collector) add(kind, name, help string, value float64, label []string) {
	b := c.families[name]
	if b == nil {
		b = fmt.Appendf(b, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, help, kind)
	}
	b = append(b, name...)
	if len(label) > 0 {
		escaped := strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(label[1], "\uFFFD"))
		b = fmt.Appendf(b, `{%s="%s"}`, label[0], escaped)
	}
	b = append(b, ' ')
	b = strconv.AppendFloat(b, value, 'g', -1, 64)
	c.families[name] = append(b, '\n')
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
