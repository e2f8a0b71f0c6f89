package simulate_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/simulate"
)

// TestOutbox follows the outbox of the shop for a cycle, in which its relay stops and is started again.
func TestOutbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := simulate.NewOutbox(1, time.Now)
		w, err := outboxwatch.New(outboxwatch.Options{Sources: []outboxwatch.Source{o}})
		if err != nil {
			t.Fatal(err)
		}
		sent := map[string]bool{}
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = w.Run(ctx) })
		run.Go(func() {
			_ = o.Run(ctx, func(_ context.Context, _ string, m broker.Publishing) bool {
				id, _ := m.Headers["id"].(string)
				if sent[id] {
					t.Errorf("%s is sent twice", id)
				}
				sent[id] = true
				return true
			})
		})
		stopped := 0
		for range 10 * 12 {
			<-time.After(5 * time.Second)
			if w.Snapshot()[0].Relay.Stopped {
				stopped++
			}
		}
		if stopped < 12 || stopped > 36 {
			t.Errorf("stopped at %d of 120 looks, want for about two minutes", stopped)
		}
		page, err := o.DeadLetters(ctx, outboxwatch.DeadLetterRequest{Limit: 1})
		if err != nil || len(page.DeadLetters) != 1 || page.Next == "" {
			t.Fatalf("dead letters = %+v, %v", page, err)
		}
		letter := outboxwatch.Letter{ID: page.DeadLetters[0].ID, TaskID: page.DeadLetters[0].TaskID}
		for want := 1; want >= 0; want-- {
			if c, err := w.Requeue(ctx, "shop", []outboxwatch.Letter{letter}); err != nil || len(c.Done) != want {
				t.Errorf("requeue = %+v, %v, want %d", c, err, want)
			}
		}
		<-time.After(3 * time.Minute)
		cancel()
		run.Wait()
		if len(sent) < 200 {
			t.Errorf("%d receipts were sent in 13 minutes, want about one in two seconds", len(sent))
		}
	})
}
