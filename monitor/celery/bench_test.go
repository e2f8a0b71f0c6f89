package celery_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
)

// bodies returns the events of n tasks as workers send them, in messages of batch events.
func bodies(n, batch int) [][]byte {
	var out [][]byte
	var pending []string
	flush := func() {
		if batch == 1 {
			out = append(out, []byte(pending[0]))
		} else {
			out = append(out, []byte("["+strings.Join(pending, ", ")+"]"))
		}
		pending = pending[:0]
	}
	clock := 0
	for i := range n {
		id := fmt.Sprintf("%08x-6f61-4a64-9e1f-%012x", uint32(i)*2654435761, i)
		common := func(kind, fields string) {
			clock++
			pending = append(pending, fmt.Sprintf(`{"hostname": "celery@web-%d", "utcoffset": 0, "pid": %d, "clock": %d, "uuid": "%s", %s"timestamp": %.6f, "type": "task-%s"}`,
				i%4, 100+i%4, clock, id, fields, 1795222153.963517+float64(clock)/1000, kind))
			if len(pending) == batch {
				flush()
			}
		}
		common("received", fmt.Sprintf(`"name": "billing.tasks.charge_card_%d", "args": "(%d, 'EUR', {'order': 'A-%d'})", "kwargs": "{'retry': True}", "root_id": "%s", "parent_id": null, "retries": 0, "eta": null, "expires": null, `, i%20, i, i, id))
		common("started", "")
		common("succeeded", `"result": "{'status': 'ok', 'amount': 42}", "runtime": 0.0412345678, `)
	}
	if len(pending) > 0 {
		flush()
	}
	return out
}

// BenchmarkScanAndFold reports events per second from message body to state, on one core.
func BenchmarkScanAndFold(b *testing.B) {
	for _, batch := range []int{1, 24} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			const tasks = 100_000
			messages := bodies(tasks, batch)
			b.ReportAllocs()
			b.ResetTimer()
			events := 0
			for range b.N {
				c := state.New(state.Options{})
				var d celery.Decoder
				for _, m := range messages {
					d.Decode(m, 1795222153963517, func(e *state.Event) {
						c.Apply(e)
						events++
					})
				}
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkScan reports events per second of decoding alone.
func BenchmarkScan(b *testing.B) {
	messages := bodies(10_000, 24)
	b.ReportAllocs()
	events := 0
	for range b.N {
		var d celery.Decoder
		for _, m := range messages {
			d.Decode(m, 1795222153963517, func(*state.Event) { events++ })
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
