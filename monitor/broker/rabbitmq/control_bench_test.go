package rabbitmq_test

import (
	"bytes"
	"strconv"
	"sync"
	"testing"

	"github.com/umbelhq/umbel/monitor/broker"
)

// BenchmarkPublish publishes persistent tasks of 300 bytes to a durable queue, each confirmed.
func BenchmarkPublish(b *testing.B) {
	for _, publishers := range []int{1, 4, 16} {
		b.Run("publishers="+strconv.Itoa(publishers), func(b *testing.B) {
			o := options(b)
			queue := o.ControlExchange + ".q"
			declareQueue(b, queue, false, nil)
			c := openControl(b, controlBroker(b, o))
			m := broker.Publishing{
				Persistent: true, Body: bytes.Repeat([]byte("x"), 300), Headers: map[string]any{"task": "note", "id": "1"},
			}
			var wg sync.WaitGroup
			b.ResetTimer()
			for range publishers {
				wg.Go(func() {
					for range (b.N + publishers - 1) / publishers {
						if err := c.Publish(b.Context(), queue, m); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
		})
	}
}

// BenchmarkQueueStats looks at 100 queues by passive declarations.
func BenchmarkQueueStats(b *testing.B) {
	o := options(b)
	names := make([]string, 100)
	ch := channel(b)
	for i := range names {
		names[i] = o.ControlExchange + "." + strconv.Itoa(i)
		if _, err := ch.QueueDeclare(names[i], false, false, false, false, nil); err != nil {
			b.Fatalf("declare queue: %v", err)
		}
		deleteLater(b, ch, names[i])
	}
	c := openControl(b, controlBroker(b, o))
	b.ResetTimer()
	for range b.N {
		if _, err := c.QueueStats(b.Context(), names); err != nil {
			b.Fatal(err)
		}
	}
}
