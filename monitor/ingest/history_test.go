package ingest_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/state"
)

// TestTextThatMemoryHasDroppedIsRead gives memory room for 2 MiB of text.
func TestTextThatMemoryHasDroppedIsRead(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	m := run(t, ingest.Options{Broker: b, Store: memoryStore(t), State: state.Options{MaxText: 1}})
	const big = `{"type":"task-succeeded","hostname":"w1","pid":7,"clock":%d,"timestamp":1790000001,"uuid":"t%d","result":"%s"}`
	publish(t, b, fmt.Appendf(nil, big, 1, 0, "first"))
	saved(t, m, 1)
	for i := 1; i < 50; i++ {
		publish(t, b, fmt.Appendf(nil, big, i+1, i, strings.Repeat("x", 60_000)))
	}
	saved(t, m, 50)
	m.View(func(c state.View) {
		if held, _ := c.Task("t0"); !held.Truncated || held.Result != nil {
			t.Errorf("memory holds result %v, truncated %v; want it dropped", held.Result, held.Truncated)
		}
	})
	got, err := m.read.Task(t.Context(), "t0")
	if err != nil || got.Truncated || got.Result == nil || *got.Result != "first" {
		t.Errorf("result %v, truncated %v, error %v; want all of it", got.Result, got.Truncated, err)
	}
}

// TestEventsOfForgottenTasksThatComeAgainCountOnce repeats what memory has forgotten, and only the history knows.
func TestEventsOfForgottenTasksThatComeAgainCountOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{Limit: 1 << 16})
		s := memoryStore(t)
		m := run(t, ingest.Options{Broker: b, Store: s, State: state.Options{MaxTasks: 100}})
		const tasks = 300
		told := uint64(0)
		tell := func(from, to int, kinds ...string) {
			for i := from; i < to; i++ {
				for _, kind := range kinds {
					publish(t, b, body(kind, fmt.Sprint("t", i), i+1))
					told++
				}
			}
			saved(t, m, told)
		}
		tell(0, tasks, "received", "succeeded")
		m.View(func(c state.View) {
			if _, held := c.Task("t0"); held {
				t.Fatal("memory still holds the first task")
			}
		})
		tell(0, 50, "received", "succeeded") // again
		tell(0, 50, "started")               // late
		<-time.After(15 * time.Second)       // for a checkpoint
		synctest.Wait()
		received, succeeded := int64(0), int64(0)
		err := s.Rollups(t.Context(), history.RollupRange{To: time.Now().Add(time.Hour), Span: time.Minute}, func(m history.Rollup) error {
			received, succeeded = received+m.Received, succeeded+m.Succeeded
			return nil
		})
		if err != nil || received != tasks || succeeded != tasks {
			t.Errorf("counted %d received and %d succeeded, error %v, want %d of each", received, succeeded, err, tasks)
		}
		if events, err := m.read.TaskEvents(t.Context(), "t0"); err != nil || len(events) != 3 {
			t.Errorf("the first task has %d events, error %v, want 3", len(events), err)
		}
	})
}
