package ingest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/metrics"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/loss"
)

// taskMessages are the events of n tasks in turns of 8, as workers send them, from many workers and of many names, with 170 bytes
// of arguments and 60 of a result, which hold no secrets.
func taskMessages(n, workers, names int) [][]byte {
	var list [][]byte
	clock := 0
	add := func(i int, kind, fields string) {
		clock++
		list = append(list, fmt.Appendf(nil, `{"hostname": "celery@web-%d", "utcoffset": 0, "pid": 100, "clock": %d, "uuid": "%08x-6f61-4a64-9e1f-%012x", %s"timestamp": %.6f, "type": "task-%s"}`,
			i*7919%workers, clock, uint32(i)*2654435761, i, fields, 1795222153.963517+float64(clock)/1000, kind))
	}
	for first := 0; first < n; first += 8 {
		turn := min(first+8, n)
		for i := first; i < turn; i++ {
			add(i, "received", fmt.Sprintf(`"name": "billing.tasks.charge_card_%d", "args": "(%d, 'customer-%d@example.com', {'order': 'A-%d', 'currency': 'EUR', 'amount': 42.5, 'express': True})", `+
				`"kwargs": "{'warehouse': 'Rotterdam', 'retry': True, 'lines': [{'sku': 'B-12', 'n': 2}]}", "retries": 0, "eta": null, "expires": null, `, i*31%names, i, i, i))
		}
		for i := first; i < turn; i++ {
			add(i, "started", "")
		}
		for i := first; i < turn; i++ {
			add(i, "succeeded", fmt.Sprintf(`"result": "{'status': 'ok', 'amount': 42, 'invoice': 'F-2026-%08d'}", "runtime": %g, `, i, .01+float64(i%50)/100))
		}
	}
	return list
}

// BenchmarkShares measures what redaction, metrics, the detection of losses and the offsets of clocks cost of scan, clock and fold, in
// the same run and in turns, so that a busy machine slows all of them down: medians of batches. Nothing matches a rule. Offsets are
// the difference to a fold of events without a time of receipt, which bound no clock.
func BenchmarkShares(b *testing.B) {
	for _, workers := range []int{4, 200} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			messages := taskMessages(20_000, workers, 20)
			redactor, recorder := redact.Default(), metrics.New(metrics.Options{})
			events, changes := make([]state.Event, 0, 120), make([]state.Change, 120)
			var took [7][]float64 // by part and batch, ns
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				c, offsets := state.New(state.Options{}), false
				folds := [2]*state.Cluster{state.New(state.Options{}), state.New(state.Options{})}
				var lost loss.Detector
				var d celery.Decoder
				for batch := range slices.Chunk(messages, cap(events)) { // few reads of the clock, which is slow on some machines
					begun := time.Now()
					lap := func(i int) {
						now := time.Now()
						took[i] = append(took[i], float64(now.Sub(begun).Nanoseconds()))
						begun = now
					}
					events = events[:0]
					for _, m := range batch {
						d.Decode(m, 1795222153963517, func(e *state.Event) { events = append(events, *e) })
					}
					lap(0)
					for i := range events {
						redactor.Event(&events[i], "")
					}
					lap(1)
					for i := range events {
						changes[i] = c.Apply(&events[i])
					}
					lap(2)
					for i := range events {
						recorder.Add(&events[i], &changes[i])
					}
					lap(3)
					for i := range events {
						lost.Add(&events[i], changes[i])
					}
					lap(4)
					offsets = !offsets // the second of two equal folds finds the events in the cache
					for _, bounded := range []bool{offsets, !offsets} {
						part := 5
						for i := range events {
							events[i].ReceivedMicros = 0
						}
						if bounded {
							part = 6
							for i := range events {
								events[i].ReceivedMicros = events[i].Micros + 5_000
							}
						}
						c := folds[part-5]
						begun = time.Now()
						for i := range events {
							c.Apply(&events[i])
						}
						lap(part)
					}
				}
			}
			ingest := median(took[0]) + median(took[2])
			b.ReportMetric(100*median(took[1])/ingest, "%redaction")
			b.ReportMetric(100*median(took[3])/ingest, "%metrics")
			b.ReportMetric(100*median(took[4])/ingest, "%losses")
			b.ReportMetric(100*(median(took[6])-median(took[5]))/ingest, "%offsets")
			b.ReportMetric(ingest/float64(cap(events)), "ns/event")
		})
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
