package monitor_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/history"
	"github.com/umbelhq/umbel/monitor"
	"github.com/umbelhq/umbel/monitor/store"
	"github.com/umbelhq/umbel/monitor/transport/memory"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// live runs a monitor on a history in dir and returns a function that ends both.
func live(t *testing.T, b *memory.Broker, dir string) (*monitor.Monitor, func()) {
	t.Helper()
	s := open(t, dir)
	m, err := monitor.New(monitor.Options{Broker: b, Store: s, State: state.Options{MaxTasks: 20}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	return m, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close history: %v", err)
		}
	}
}

func TestARestartBringsBackWhatWasThere(t *testing.T) {
	t.Parallel()
	b, dir := memory.New(memory.Options{}), t.TempDir()
	first, stop := live(t, b, dir)
	var events uint64
	for i := range uint64(6) {
		h := history.New(40+i, history.Options{Tasks: 10, Deaths: true})
		publish(t, b, raw(h.Events)...)
		events += uint64(len(h.Events))
	}
	saved(t, first, events)
	before, workers, clock := listOf(t, first), workersOf(first), clockOf(first)
	stop()
	second, stop := live(t, b, dir)
	defer stop()
	await(t, second, "the history", func() bool { return second.Health().Ready })
	if diff := cmp.Diff(before, listOf(t, second), eventsAlone()); diff != "" {
		t.Errorf("tasks (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(workers, workersOf(second)); diff != "" {
		t.Errorf("workers (-before +after):\n%s", diff)
	}
	if got := clockOf(second); got < clock {
		t.Errorf("clock = %d, want at least %d", got, clock)
	}
	held := 0
	second.View(func(c *state.Cluster) { held = c.Counts().Tasks })
	if len(before) <= held || held < 20 {
		t.Errorf("%d of %d tasks are held in memory, want the newest 20 and all active ones", held, len(before))
	}
	if n, err := second.Count(t.Context(), query.Query{}); err != nil || n != (store.Count{N: len(before), Exact: true}) {
		t.Errorf("count = %+v, %v, want %d exactly", n, err, len(before))
	}
}

func listOf(t *testing.T, m *monitor.Monitor) (all []state.Task) {
	t.Helper()
	for r := (store.Request{Limit: 500}); ; {
		page, err := m.Tasks(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page.Tasks...); page.Next == nil {
			return all
		}
		r.From = page.Next
	}
}

func workersOf(m *monitor.Monitor) (workers []state.Worker) {
	m.View(func(c *state.Cluster) { workers = c.Workers() })
	for i := range workers {
		workers[i].Status = "" // of the moment
	}
	return workers
}

func clockOf(m *monitor.Monitor) (clock int64) {
	m.View(func(c *state.Cluster) { clock = c.Clock() })
	return clock
}

// slow is a store that restores when it is told to.
type slow struct {
	store.Store
	enter, leave chan struct{}
}

func (s *slow) Restore(ctx context.Context, r store.Restore) error {
	close(s.enter)
	<-s.leave
	return s.Store.Restore(ctx, r)
}

func TestNotReadyUntilRestored(t *testing.T) {
	t.Parallel()
	b := memory.New(memory.Options{})
	s := &slow{Store: memoryStore(t), enter: make(chan struct{}), leave: make(chan struct{})}
	m := run(t, monitor.Options{Broker: b, Store: s})
	<-s.enter
	if h := m.Health(); h.Ready || h.Broker.Connected {
		t.Errorf("while history is restored: ready %v, broker %+v, want neither", h.Ready, h.Broker)
	}
	if _, err := m.Tasks(t.Context(), store.Request{Limit: 10}); err != nil {
		t.Errorf("list meanwhile: %v", err)
	}
	close(s.leave)
	await(t, m, "the broker", func() bool { return m.Health().Ready && m.Health().Broker.Connected })
	if why := m.Health().Broker.LastError; why != "" {
		t.Errorf("in the end: %q", why)
	}
}

// pruning is a store that removes a task when it is told to.
type pruning struct {
	store.Store
	remove chan []string
}

func (p *pruning) Run(ctx context.Context, removed func([]string)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case ids := <-p.remove:
			removed(ids)
		}
	}
}

func TestRemovedTasksLeaveMemory(t *testing.T) {
	t.Parallel()
	b, s := memory.New(memory.Options{}), &pruning{memoryStore(t), make(chan []string)}
	m := run(t, monitor.Options{Broker: b, Store: s})
	publish(t, b, body("succeeded", "old", 1), body("succeeded", "new", 2))
	saved(t, m, 2)
	changed := m.Changed()
	s.remove <- []string{"old"}
	<-changed
	if n := tasks(m); n != 1 {
		t.Errorf("%d tasks are held, want 1", n)
	}
}

// TestAClockSetBack turns the wall clock back by an hour. Whoever falls silent is late all the same, and what
// happens is counted and saved.
func TestAClockSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int64
		b, s := memory.New(memory.Options{}), memoryStore(t)
		m := run(t, monitor.Options{Broker: b, Store: s, Now: func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }})
		beat := func(name string, clock int) {
			publish(t, b, fmt.Appendf(nil, `{"type":"worker-heartbeat","hostname":%q,"pid":7,"clock":%d,"freq":2.0,"timestamp":%d}`, name, clock, time.Now().Unix()))
		}
		status := func(name string) (s state.Status) {
			m.View(func(c *state.Cluster) {
				if w, ok := c.Worker(name); ok {
					s = w.Status
				}
			})
			return s
		}
		beat("silent", 1)
		beat("alive", 1)
		await(t, m, "both workers", func() bool { return status("silent") == state.Online && status("alive") == state.Online })
		back.Store(int64(time.Hour))
		for i := range 30 {
			beat("alive", i+2)
			publish(t, b, fmt.Appendf(nil, `{"type":"task-received","hostname":"alive","pid":7,"clock":%d,"timestamp":%d,"uuid":"t%d"}`, i+2, time.Now().Unix(), i))
			<-time.After(time.Second)
		}
		if silent, alive := status("silent"), status("alive"); silent != state.Offline || alive != state.Online {
			t.Errorf("after 30 s: silent is %s and alive %s, want offline and online", silent, alive)
		}
		if r := m.Rates(); r.Received < 0.5 || r.Received > 1.5 {
			t.Errorf("%v tasks received a second, want about 1", r.Received)
		}
		saved(t, m, 62)
	})
}
