package rabbitmq_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/broker"
)

func expectWarning(tb testing.TB, s broker.QueueStats, text string) {
	tb.Helper()
	if all := strings.Join(s.Broker.Warnings, "\n"); !strings.Contains(all, text) {
		tb.Errorf("warnings %q do not contain %q", all, text)
	}
}

func TestQueueStatsReportSingleQueues(t *testing.T) {
	t.Parallel()
	o := options(t)
	locked := o.ControlExchange + ".locked"
	declareQueue(t, locked, true, nil)
	c := openControl(t, controlBroker(t, o))
	long := strings.Repeat("y", 300)
	s, err := c.QueueStats(soon(t), []string{locked, long})
	if err != nil {
		t.Fatalf("stats: %v", err)
	}
	if len(s.Queues) != 2 || !strings.Contains(s.Queues[0].Error, "one connection alone") || !s.Queues[1].Missing {
		t.Errorf("stats = %+v, want an error and a missing queue", s.Queues)
	}
	if _, err := c.Purge(soon(t), locked); !errors.Is(err, broker.ErrRefused) {
		t.Errorf("purge another connection's queue: error %v, want %v", err, broker.ErrRefused)
	}
}

func TestQueueStatsAreBounded(t *testing.T) {
	t.Parallel()
	o := options(t)
	c := openControl(t, controlBroker(t, o))
	names := make([]string, 700)
	for i := range names {
		names[i] = o.ControlExchange + "." + strconv.Itoa(i)
	}
	s, err := c.QueueStats(soon(t), names)
	if err != nil {
		t.Fatalf("stats: %v", err)
	}
	if got, want := len(s.Queues), 500; got != want {
		t.Errorf("stats has %d queues, want %d", got, want)
	}
	for _, q := range s.Queues {
		if !q.Missing && q.Error != "RabbitMQ did not answer in time" { // on a busy machine
			t.Errorf("queue %s is not missing: %q", q.Name, q.Error)
		}
	}
	expectWarning(t, s, "700 queues are too many to look at: 200 are left out.")
}
