package ingest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/eventgen"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/state"
)

// counted is how many events of tasks an ingester has counted.
func counted(m *ingester) (n uint64) {
	for _, s := range m.Metrics().Counted.Series {
		for _, c := range s.Events {
			n += c.Events
		}
	}
	return n
}

func TestMetricsCountNothingTwice(t *testing.T) {
	t.Parallel()
	b, dir := inproc.New(inproc.Options{}), t.TempDir()
	first, stop := live(t, b, dir)
	h, events := eventgen.New(40, eventgen.Options{Tasks: 10}), 0
	for _, e := range h.Events {
		if strings.Contains(string(e), `"task-`) {
			events++
		}
	}
	publish(t, b, raw(h.Events)...)
	saved(t, first, uint64(len(h.Events)))
	tasks := counted(first)
	if tasks != uint64(events) {
		t.Errorf("%d events of tasks counted, want %d", tasks, events)
	}
	publish(t, b, raw(h.Events)...)
	saved(t, first, 2*uint64(len(h.Events)))
	if got := counted(first); got != tasks {
		t.Errorf("%d events counted after they were delivered again, want %d", got, tasks)
	}
	if m := first.Metrics().Counted; m.EventLag.Count() == 0 || m.HistoryLag.Count() == 0 || m.Writes.Count() == 0 || m.WriteErrors != 0 {
		t.Errorf("%d lags to the fold, %d to the history, %d writes, %d errors", m.EventLag.Count(), m.HistoryLag.Count(), m.Writes.Count(), m.WriteErrors)
	}
	stop()
	second, stop := live(t, b, dir)
	defer stop()
	await(t, second, "the history", func() bool { return second.Health().Ready })
	publish(t, b, raw(h.Events)...)
	saved(t, second, uint64(len(h.Events)))
	if got := counted(second); got != 0 {
		t.Errorf("%d events counted after a restart, want none: all are in the history", got)
	}
}

func TestSeriesOfAWorkerThatIsGoneGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{})
		m, err := newIngester(ingest.Options{
			Broker: b, Store: memoryStore(t), Metrics: ingest.MetricsOptions{PurgeOfflineWorkers: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run = %v", err)
			}
		}()
		publish(t, b,
			fmt.Appendf(nil, `{"type":"task-received","uuid":"a","name":"mail","hostname":"celery@w","pid":7,"clock":1,"timestamp":%d}`, time.Now().Unix()),
			fmt.Appendf(nil, `{"type":"worker-heartbeat","hostname":"celery@w","pid":7,"clock":2,"freq":2.0,"timestamp":%d}`, time.Now().Unix()))
		statuses := func() []state.Status {
			synctest.Wait()
			list := []state.Status{}
			for _, w := range m.Metrics().Workers {
				list = append(list, w.Status)
			}
			return list
		}
		for _, step := range []struct {
			after  time.Duration
			want   []state.Status
			events uint64
		}{{time.Second, []state.Status{state.Online}, 1}, {30 * time.Second, []state.Status{state.Offline}, 1}, {time.Minute, []state.Status{}, 0}} {
			<-time.After(step.after)
			if diff := cmp.Diff(step.want, statuses()); diff != "" {
				t.Errorf("%v later (-want +got):\n%s", step.after, diff)
			}
			if got := counted(m); got != step.events {
				t.Errorf("%v later, %d events are counted, want %d", step.after, got, step.events)
			}
		}
	})
}
