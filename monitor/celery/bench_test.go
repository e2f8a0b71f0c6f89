package celery_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

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

// reference is what encoding/json decodes of an event, to be compared with.
type reference struct {
	Type      string  `json:"type"`
	Hostname  string  `json:"hostname"`
	UTCOffset float64 `json:"utcoffset"`
	PID       int64   `json:"pid"`
	Clock     int64   `json:"clock"`
	Timestamp float64 `json:"timestamp"`
	UUID      string  `json:"uuid"`
	Name      string  `json:"name"`
	Args      string  `json:"args"`
	Kwargs    string  `json:"kwargs"`
	RootID    string  `json:"root_id"`
	ParentID  *string `json:"parent_id"`
	Retries   int64   `json:"retries"`
	ETA       *string `json:"eta"`
	Expires   *string `json:"expires"`
	Result    string  `json:"result"`
	Runtime   float64 `json:"runtime"`
}

// decodeReference decodes messages by encoding/json alone.
func decodeReference(b *testing.B, messages [][]byte, batch int) {
	b.Helper()
	for _, m := range messages {
		var one reference
		var many []reference
		var into any = &one
		if batch > 1 {
			into = &many
		}
		if err := json.Unmarshal(m, into); err != nil {
			b.Fatal(err)
		}
	}
}

// processorTime returns the user time that the process has taken.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano())
}

// compareWithJSON calls work b.N times, each time in turns with encoding/json, and reports the processor time of an event and how
// many times longer encoding/json takes. A busy machine slows down both. It wants -cpu 1: with more, garbage is collected beside.
func compareWithJSON(b *testing.B, messages [][]byte, batch int, work func() (events int)) {
	b.Helper()
	var took, other time.Duration
	events := 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		runtime.GC()
		begun := processorTime(b)
		decodeReference(b, messages, batch)
		other += processorTime(b) - begun
		runtime.GC()
		begun = processorTime(b)
		b.StartTimer()
		events += work()
		b.StopTimer()
		took += processorTime(b) - begun
		b.StartTimer()
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(took.Nanoseconds())/float64(events), "cpu-ns/event")
	b.ReportMetric(other.Seconds()/took.Seconds(), "json/this")
}

// BenchmarkScanAndFold measures the way from message body to state.
func BenchmarkScanAndFold(b *testing.B) {
	for _, batch := range []int{1, 24} {
		messages := bodies(100_000, batch)
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			compareWithJSON(b, messages, batch, func() (events int) {
				c := state.New(state.Options{})
				var d celery.Decoder
				for _, m := range messages {
					d.Decode(m, 1795222153963517, func(e *state.Event) {
						c.Apply(e)
						events++
					})
				}
				return events
			})
		})
	}
}

// BenchmarkScan measures decoding alone.
func BenchmarkScan(b *testing.B) {
	messages := bodies(10_000, 24)
	compareWithJSON(b, messages, 24, func() (events int) {
		var d celery.Decoder
		for _, m := range messages {
			d.Decode(m, 1795222153963517, func(*state.Event) { events++ })
		}
		return events
	})
}
