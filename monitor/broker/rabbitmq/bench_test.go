package rabbitmq_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/rabbitmq"
)

const (
	benchRounds   = 8
	benchMessages = 12_500 // per round, 100,000 in all
	benchBody     = 300    // bytes, a typical event
)

// BenchmarkConsume reads 100,000 messages that wait in a queue through an event stream that acknowledges
// each batch, and through the bare library acknowledging every 64th message, both with the same
// prefetch. They take turns, and the medians of their rounds count, so that what else the machine
// does weighs little. ratio is the stream's rate over the library's.
func BenchmarkConsume(b *testing.B) {
	o := options(b)
	o.Queue = o.Exchange + ".queue"
	broker := open(b, o)
	if err := connect(b, broker).Close(); err != nil {
		b.Fatalf("close session: %v", err)
	}
	var session, bare []time.Duration
	for b.Loop() {
		for range benchRounds {
			fill(b, o.Exchange)
			session = append(session, consumeSession(b, broker))
			fill(b, o.Exchange)
			bare = append(bare, consumeBare(b, o.Queue))
		}
	}
	b.ReportMetric(0, "ns/op") // covers filling, and so says nothing
	b.ReportMetric(benchMessages/median(session), "session-msgs/s")
	b.ReportMetric(benchMessages/median(bare), "bare-msgs/s")
	b.ReportMetric(median(bare)/median(session), "ratio")
}

// median is that of d, in seconds.
func median(d []time.Duration) float64 {
	return slices.Sorted(slices.Values(d))[len(d)/2].Seconds()
}

// fill publishes benchMessages and returns when the broker has them all.
func fill(b *testing.B, exchange string) {
	b.Helper()
	ch := channel(b)
	if err := ch.Confirm(false); err != nil {
		b.Fatalf("ask for confirmation: %v", err)
	}
	m := amqp091.Publishing{ContentType: "application/json", ContentEncoding: "utf-8", Body: bytes.Repeat([]byte("x"), benchBody)}
	var last *amqp091.DeferredConfirmation
	for i := range benchMessages {
		c, err := ch.PublishWithDeferredConfirm(exchange, "task.received", false, false, m)
		if err != nil {
			b.Fatalf("publish: %v", err)
		}
		last = c
		if i%1000 == 999 { // not more than the broker takes
			last.Wait()
		}
	}
	if !last.Wait() {
		b.Fatal("publish: not confirmed")
	}
}

// consumeSession receives benchMessages through the package under test.
func consumeSession(b *testing.B, broker *rabbitmq.Broker) time.Duration {
	b.Helper()
	s := connect(b, broker)
	start := time.Now()
	for n := 0; n < benchMessages; {
		batch, err := s.Receive(b.Context())
		if err != nil {
			b.Fatalf("receive: %v", err)
		}
		n += len(batch)
		if err := s.Ack(batch[len(batch)-1].Tag); err != nil {
			b.Fatalf("acknowledge: %v", err)
		}
	}
	took := time.Since(start)
	if err := s.Close(); err != nil {
		b.Fatalf("close session: %v", err)
	}
	return took
}

// consumeBare receives benchMessages with nothing but the library.
func consumeBare(b *testing.B, queue string) time.Duration {
	b.Helper()
	ch := channel(b)
	if err := ch.Qos(2048, 0, false); err != nil {
		b.Fatalf("set prefetch: %v", err)
	}
	deliveries, err := ch.Consume(queue, "bare", false, false, false, false, nil)
	if err != nil {
		b.Fatalf("consume: %v", err)
	}
	start := time.Now()
	n := 0
	for d := range deliveries {
		n++
		if n%broker.MaxBatch == 0 || n == benchMessages {
			if err := ch.Ack(d.DeliveryTag, true); err != nil {
				b.Fatalf("acknowledge: %v", err)
			}
		}
		if n == benchMessages {
			break
		}
	}
	took := time.Since(start)
	if err := ch.Cancel("bare", false); err != nil {
		b.Fatalf("cancel: %v", err)
	}
	return took
}
