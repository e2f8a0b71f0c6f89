package relay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// instant is a broker that costs nothing.
type instant struct{}

func (instant) Send(context.Context, history.Command) (relay.Sent, error) { return relay.Sent{}, nil }

// BenchmarkRelay enqueues a thousand commands as one order, and relays them from a file.
func BenchmarkRelay(b *testing.B) {
	const n = 1000
	for _, groups := range []int{1, 100} {
		b.Run(fmt.Sprintf("groups=%d", groups), func(b *testing.B) {
			d, err := sqlite.Open(b.Context(), sqlite.Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			r, err := relay.New(relay.Options{Store: d, Sender: instant{}})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			var enqueued, relayed time.Duration
			for b.Loop() {
				o := history.CommandRequest{Audit: history.AuditRecord{At: time.Now()}}
				for i := range n {
					o.Commands = append(o.Commands, pendingCommand(fmt.Sprint(i%groups), "Publish shop.pay to queue mail"))
				}
				begin := time.Now()
				written, _, err := d.Enqueue(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				enqueued += time.Since(begin)
				begin = time.Now()
				ids := make([]int64, n)
				for i := range written {
					ids[i] = written[i].ID
				}
				r.Wake()
				if _, err := r.Wait(b.Context(), ids); err != nil {
					b.Fatal(err)
				}
				relayed += time.Since(begin)
			}
			b.ReportMetric(float64(b.N*n)/enqueued.Seconds(), "enqueued/s")
			b.ReportMetric(float64(b.N*n)/relayed.Seconds(), "relayed/s")
			cancel()
			if err := <-ended; err != nil {
				b.Error(err)
			}
			if err := d.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}
