package ingest_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/state"
)

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

func raw(events []json.RawMessage) [][]byte {
	list := make([][]byte, len(events))
	for i := range events {
		list[i] = events[i]
	}
	return list
}
