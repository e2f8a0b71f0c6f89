package main_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/livetest"
)

// BenchmarkLiveBytes measures what an open page receives from the demo at several rates of tasks, in bytes and frames a
// second: payload of messages, without the headers of WebSocket and TCP.
func BenchmarkLiveBytes(b *testing.B) {
	const seconds = 20
	for _, rate := range []string{"0.01", "20", "400"} {
		for _, topic := range []string{"/", "/tasks", "/workers"} {
			b.Run(fmt.Sprintf("rate=%s/page=%s", rate, topic), func(b *testing.B) {
				d := start(b, nil, "demo", "--rate", rate)
				for b.Loop() {
					conn := dial(b, d, topic)
					var r livetest.Reader
					bytes, frames, first := 0, 0, 0
					begin := time.Now()
					ctx, cancel := context.WithTimeout(b.Context(), (seconds+5)*time.Second)
					for {
						m, n, err := r.Read(ctx, conn)
						if err != nil {
							break
						}
						switch {
						case m.Frame && first == 0:
							first = n
						case time.Since(begin) > 5*time.Second: // what is past is shown
							bytes += n
							frames++
						}
					}
					cancel()
					b.ReportMetric(float64(bytes)/seconds, "B/s")
					b.ReportMetric(float64(frames)/seconds, "frames/s")
					b.ReportMetric(float64(first), "first-B")
					b.ReportMetric(0, "ns/op") // says nothing here
				}
			})
		}
	}
}

// BenchmarkLiveMemory measures what each of 200 sockets adds to the resident memory of the demo: all on one page, and
// each on a page of its own.
func BenchmarkLiveMemory(b *testing.B) {
	const sockets = 200
	for name, topic := range map[string]func(i int) string{
		"page=one": func(int) string { return "/tasks" },
		"page=own": func(i int) string { return fmt.Sprintf("/tasks?q=-id%%3Ax%d", i) },
	} {
		b.Run(name, func(b *testing.B) {
			d := start(b, nil, "demo", "--rate", "20")
			<-time.After(10 * time.Second) // until what is past is in memory
			for b.Loop() {
				before := resident(b, d.process)
				ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
				var wg sync.WaitGroup
				for i := range sockets {
					conn := dial(b, d, topic(i))
					wg.Go(func() {
						for err := error(nil); err == nil; {
							_, _, err = conn.Read(ctx)
						}
					})
				}
				<-time.After(20 * time.Second)
				b.ReportMetric((resident(b, d.process)-before)*1024/sockets, "KB/socket")
				b.ReportMetric(0, "ns/op") // says nothing here
				cancel()
				wg.Wait()
			}
		})
	}
}
