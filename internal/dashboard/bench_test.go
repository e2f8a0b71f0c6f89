package dashboard_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/monitor/simulate"
)

const (
	benchRounds = 5
	benchEvents = 60_000 // per round
)

// BenchmarkRabbitMQ reads events that wait in a queue: with a history on disk, until they are written and
// acknowledged; with a store that keeps nothing, until they are folded; and through a bare consumer that acknowledges every 64th message
// and discards them. They take turns, and the medians of their rounds count. ratio is the rate without a history over
// the bare one's, kept-ratio that with one over that without; saved-events/s is until every task is saved as well;
// events/core-s is by this process's CPU time.
func BenchmarkRabbitMQ(b *testing.B) {
	url := testenv.AMQP(b)
	for _, batch := range []int{1, 24} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			q := newBenchQueue(b, url, simulate.Typical(benchEvents, batch))
			var full, bare, cpu, kept, saved, savedCPU []float64
			for b.Loop() {
				for range benchRounds {
					q.fill(b)
					used := cpuTime(b)
					all, _, _ := q.consume(b, nothing{})
					full = append(full, all)
					cpu = append(cpu, cpuTime(b)-used)
					q.fill(b)
					used = cpuTime(b)
					written, everything := q.keep(b)
					savedCPU = append(savedCPU, cpuTime(b)-used)
					kept, saved = append(kept, written), append(saved, everything)
					q.fill(b)
					bare = append(bare, q.discard(b))
				}
			}
			b.ReportMetric(0, "ns/op") // covers filling, and so says nothing
			b.ReportMetric(benchEvents/median(full), "events/s")
			b.ReportMetric(benchEvents/median(cpu), "events/core-s")
			b.ReportMetric(benchEvents/median(bare), "bare-events/s")
			b.ReportMetric(median(bare)/median(full), "ratio")
			b.ReportMetric(benchEvents/median(kept), "kept-events/s")
			b.ReportMetric(benchEvents/median(saved), "saved-events/s")
			b.ReportMetric(benchEvents/median(savedCPU), "saved-events/core-s")
			b.ReportMetric(median(full)/median(kept), "kept-ratio")
		})
	}
}

func median(f []float64) float64 { return slices.Sorted(slices.Values(f))[len(f)/2] }

// cpuTime is what this process has used so far, in seconds.
func cpuTime(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// benchQueue is a queue with events to read.
type benchQueue struct {
	options dashboard.Options
	channel *amqp091.Channel
	bodies  [][]byte
}

func newBenchQueue(b *testing.B, url string, bodies [][]byte) *benchQueue {
	b.Helper()
	conn, err := amqp091.Dial(url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		b.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		b.Fatal(err)
	}
	name := "bench-" + strings.ToLower(b.Name())
	q := &benchQueue{channel: ch, bodies: bodies, options: dashboard.Options{
		BrokerURL: url, Queue: name, Exchange: name, LeaveEventsOff: true,
	}}
	session, err := q.broker(b).Subscribe(b.Context()) // declares the queue
	if err != nil {
		b.Fatal(err)
	}
	if err := session.Close(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_, _ = ch.QueueDelete(name, false, false, false)
		_ = ch.ExchangeDelete(name, false, false)
	})
	return q
}

func (q *benchQueue) broker(b *testing.B) broker.Broker {
	b.Helper()
	broker, err := dashboard.Broker(q.options)
	if err != nil {
		b.Fatal(err)
	}
	return broker
}

// fill publishes every body and waits for the broker to have them.
func (q *benchQueue) fill(b *testing.B) {
	b.Helper()
	var last *amqp091.DeferredConfirmation
	for i, body := range q.bodies {
		m := amqp091.Publishing{ContentType: "application/json", ContentEncoding: "utf-8", Body: body}
		c, err := q.channel.PublishWithDeferredConfirm(q.options.Exchange, "task.multi", false, false, m)
		if err != nil {
			b.Fatal(err)
		}
		if last = c; i%1000 == 999 { // not more than the broker takes
			last.Wait()
		}
	}
	last.Wait()
}

// nothing is a store that keeps nothing.
type nothing struct{ history.Store }

func (nothing) Restore(context.Context, history.RestoreOptions) error { return nil }

func (nothing) Write(context.Context, history.Batch) (history.WriteResult, error) {
	return history.WriteResult{JournalEntry: 1}, nil
}

func (nothing) Health() history.Health { return history.Health{} }

func (nothing) RetentionRules() history.RetentionRules { return history.RetentionRules{} }

func (nothing) Run(context.Context, func([]string)) error { return nil }

// keep reads every event into a fresh monitor with a history on disk.
func (q *benchQueue) keep(b *testing.B) (written, saved float64) {
	b.Helper()
	s, err := sqlite.Open(b.Context(), sqlite.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}()
	_, written, saved = q.consume(b, s)
	return written, saved
}

// consume reads every event into a fresh monitor and returns the seconds until all were folded, until all were
// written, and until all tasks were.
func (q *benchQueue) consume(b *testing.B, s history.Store) (folded, written, saved float64) {
	b.Helper()
	m, err := ingest.New(ingest.Options{Broker: q.broker(b), Store: s})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	for !m.Health().Broker.Connected {
		<-m.Changed()
	}
	start := time.Now()
	await := func(ok func(ingest.Health) bool) float64 {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for !ok(m.Health()) {
			<-tick.C
		}
		return time.Since(start).Seconds()
	}
	folded = await(func(h ingest.Health) bool { return h.Events >= benchEvents })
	written = await(func(h ingest.Health) bool { return h.Store.PendingEvents == 0 })
	saved = await(func(h ingest.Health) bool { return h.Store.UnsavedTasks == 0 })
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return folded, written, saved
}

// discard reads every message with nothing but the library and returns the seconds that took.
func (q *benchQueue) discard(b *testing.B) float64 {
	b.Helper()
	if err := q.channel.Qos(2048, 0, false); err != nil {
		b.Fatal(err)
	}
	deliveries, err := q.channel.Consume(q.options.Queue, "bare", false, false, false, false, nil)
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	for n := 1; ; n++ {
		d := <-deliveries
		if n%64 == 0 || n == len(q.bodies) {
			if err := d.Ack(true); err != nil {
				b.Fatal(err)
			}
		}
		if n == len(q.bodies) {
			break
		}
	}
	took := time.Since(start).Seconds()
	if err := q.channel.Cancel("bare", false); err != nil {
		b.Fatal(err)
	}
	return took
}
