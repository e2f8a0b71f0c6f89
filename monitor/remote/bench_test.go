package remote_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/remote"
)

// BenchmarkPing asks workers that reply at once.
func BenchmarkPing(b *testing.B) {
	for _, workers := range []int{3, 1000} {
		b.Run("workers="+strconv.Itoa(workers), func(b *testing.B) {
			hub := inproc.New(inproc.Options{})
			var nodes []string
			for n := range workers {
				node := "celery@" + strconv.Itoa(n)
				nodes = append(nodes, node)
				defer hub.Listen(func(m broker.Publishing) {
					var r struct {
						Ticket  string         `json:"ticket"`
						ReplyTo broker.ReplyTo `json:"reply_to"`
					}
					if err := json.Unmarshal(m.Body, &r); err != nil {
						b.Error(err)
					}
					hub.Reply(r.ReplyTo, broker.Publishing{
						ContentType: "application/json", Headers: map[string]any{"ticket": r.Ticket}, Body: []byte(`{"` + node + `":{"ok":"pong"}}`),
					})
				})()
			}
			c, err := remote.New(remote.Options{Broker: hub})
			if err != nil {
				b.Fatal(err)
			}
			running := make(chan struct{})
			go func() {
				defer close(running)
				_ = c.Run(b.Context())
			}()
			b.Cleanup(func() { <-running })
			for !c.Connected() {
				<-time.After(ms)
			}
			b.ReportAllocs()
			for b.Loop() {
				a, err := c.Call(b.Context(), remote.Request{Method: "ping", Expect: nodes})
				if err != nil || len(a.Missing) > 0 {
					b.Fatalf("%d missing, error %v", len(a.Missing), err)
				}
			}
		})
	}
}
