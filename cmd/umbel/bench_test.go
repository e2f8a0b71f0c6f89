package main_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/livetest"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/simulate"
)

const benchSeconds = 10

// BenchmarkEventToBrowser publishes 60 or 2,000 events a second through RabbitMQ for 10 s while sockets are open on a
// list, and measures how long each task-succeeded takes from its publication to the arrival of the frame
// that shows it. The list is 500 rows long, so that no task is pushed off it unseen between two frames. RSS is
// that of the whole process.
func BenchmarkEventToBrowser(b *testing.B) {
	for _, load := range []struct{ rate, sockets int }{{60, 1}, {2000, 1}, {2000, 200}} {
		b.Run(fmt.Sprintf("rate=%d/sockets=%d", load.rate, load.sockets), func(b *testing.B) {
			for b.Loop() {
				benchLatency(b, load.rate, load.sockets)
			}
		})
	}
}

func benchLatency(b *testing.B, rate, sockets int) {
	b.Helper()
	broker := testenv.VirtualHost(b)
	d := start(b, nil, "serve", "--broker-url", broker)
	d.connected(b)
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	shown := arrivals{at: map[string]time.Time{}}
	for i := range sockets {
		conn := dial(b, d, "/tasks?limit=500")
		wg.Go(func() {
			var r livetest.Reader
			for err := error(nil); err == nil; {
				if i > 0 {
					_, _, err = conn.Read(ctx)
					continue
				}
				var m livetest.Message
				if m, _, err = r.Read(ctx, conn); err == nil {
					shown.note(m, time.Now())
				}
			}
		})
	}
	bodies := simulate.Typical(rate*benchSeconds, 1)
	published := pace(b, newBus(b, broker), bodies, float64(rate))
	eventually(b, timeout, func() error {
		if n := shown.count(); n < len(published) {
			return fmt.Errorf("%d of %d tasks were shown in SUCCESS", n, len(published))
		}
		return nil
	})
	rss := resident(b, d.process)
	cancel()
	wg.Wait()

	var took []float64 // ms
	for id, at := range published {
		took = append(took, float64(shown.at[id].Sub(at).Microseconds())/1000)
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "p50-ms")
	b.ReportMetric(took[len(took)*95/100], "p95-ms")
	b.ReportMetric(took[len(took)*99/100], "p99-ms")
	b.ReportMetric(rss, "rss-MB")
	b.ReportMetric(0, "ns/op") // says nothing here
}

// arrivals are when a socket first showed each task in SUCCESS, by the id of its row.
type arrivals struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.at)
}

// note takes in a frame.
func (a *arrivals) note(m livetest.Message, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, op := range m.Ops {
		for id, html := range op.Rows {
			if _, ok := a.at[id]; !ok && strings.Contains(fmt.Sprint(html), "state-success") {
				a.at[id] = now
			}
		}
	}
}

// pace publishes rate bodies a second, and returns when each task-succeeded was published, by the id of its row.
func pace(b *testing.B, bus bus, bodies [][]byte, rate float64) map[string]time.Time {
	b.Helper()
	published := map[string]time.Time{}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	begin := time.Now()
	for i := 0; i < len(bodies); <-tick.C {
		for due := int(time.Since(begin).Seconds() * rate); i < min(due, len(bodies)); i++ {
			e := eventOf(b, bodies[i])
			if e.Type == "task-succeeded" {
				published["t-"+e.UUID] = time.Now()
			}
			if err := bus.publish(b.Context(), strings.ReplaceAll(e.Type, "-", "."), bodies[i]); err != nil {
				b.Fatalf("publish: %v", err)
			}
		}
	}
	return published
}

// resident returns the resident memory of a process in MB.
func resident(b *testing.B, p *process) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		b.Fatalf("read memory: %v", err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatalf("read memory: %v", err)
	}
	return kb / 1024
}
