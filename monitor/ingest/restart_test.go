package ingest_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/eventgen"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// live runs a monitor on a history in dir and returns a function that ends both.
func live(t *testing.T, b *inproc.Broker, dir string) (*ingester, func()) {
	t.Helper()
	s := open(t, dir)
	m, err := newIngester(ingest.Options{Broker: b, Store: s, State: state.Options{MaxTasks: 20}})
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
	b, dir := inproc.New(inproc.Options{}), t.TempDir()
	first, stop := live(t, b, dir)
	var events uint64
	for i := range uint64(6) {
		h := eventgen.New(40+i, eventgen.Options{Tasks: 10, Deaths: true})
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
	if diff := cmp.Diff(workers, workersOf(second), alikeInAMinute()); diff != "" {
		t.Errorf("workers (-before +after):\n%s", diff)
	}
	if got := clockOf(second); got < clock {
		t.Errorf("clock = %d, want at least %d", got, clock)
	}
	await(t, second, "the rest of memory", func() bool { return !second.Health().Restoring })
	held := 0
	second.View(func(c state.View) { held = c.Counts().Tasks })
	if len(before) <= held || held < 20 {
		t.Errorf("%d of %d tasks are held in memory, want the newest 20 and all active ones", held, len(before))
	}
	if n, err := second.read.Count(t.Context(), query.Query{}); err != nil || n != (history.Count{N: len(before), Exact: true}) {
		t.Errorf("count = %+v, %v, want %d exactly", n, err, len(before))
	}
}

// alikeInAMinute takes bounds of clock offsets as equal that may have become so in a minute: they move by 500 µs a second.
func alikeInAMinute() cmp.Option {
	alike := func(a, b int64) bool { return uint64(max(a, b)-min(a, b)) <= 60*500 }
	return cmp.Comparer(func(a, b state.ClockOffset) bool { return alike(a.Low, b.Low) && alike(a.High, b.High) })
}

// Events of tasks that are in the store only join what is stored, and are shown whole at once, even while nothing can be
// saved: those of a journal after a restart, and those that come while new tasks take the place of others in memory.
func TestEventsJoinStoredTasks(t *testing.T) {
	t.Parallel()
	const n = 30
	event := func(kind state.Kind, id string, clock int64) *state.Event {
		return &state.Event{
			Kind: kind, ID: id, Name: "tasks.add", Hostname: "w1", PID: 7, Clock: clock, Micros: 1_790_000_000_000_000 + clock*60e6,
			Present: state.FieldName | state.FieldPID | state.FieldClock,
		}
	}
	late := func(f func(e *state.Event)) { // newer than everything stored
		for i := range int64(n) {
			f(event(state.TaskStarted, fmt.Sprint("t", i), 3*n+i))
		}
	}
	tests := map[string]func(c *state.Cluster) (journal []byte, message []byte){
		"journal": func(c *state.Cluster) (journal []byte, message []byte) {
			late(func(e *state.Event) { journal = state.AppendEvent(journal, e, c.Apply(e).Clock) })
			return journal, nil
		},
		"message": func(c *state.Cluster) (journal []byte, message []byte) {
			var bodies []string
			add := func(kind string, e *state.Event) {
				c.Apply(e)
				bodies = append(bodies, fmt.Sprintf(`{"type":"task-%s","uuid":%q,"name":"tasks.add","hostname":"w1","pid":7,"clock":%d,"timestamp":%d}`,
					kind, e.ID, e.Clock, e.Micros/1e6))
			}
			i := 0
			late(func(e *state.Event) {
				add("received", event(state.TaskReceived, fmt.Sprint("new", i), 1)) // old enough to be in the store
				add("started", e)
				i++
			})
			return nil, []byte("[" + strings.Join(bodies, ",") + "]")
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := state.New(state.Options{Track: true})
			for i := range int64(n) {
				c.Apply(event(state.TaskReceived, fmt.Sprint("t", i), 3*i+1))
				c.Apply(event(state.TaskSucceeded, fmt.Sprint("t", i), 3*i+2))
			}
			var stored history.Batch
			for _, u := range c.TakeUnsaved(n) {
				stored.Tasks = append(stored.Tasks, history.Task{View: u.View, Events: u.Events})
			}
			var message []byte
			stored.Journal, message = test(c)
			write(t, dir, stored)

			b := inproc.New(inproc.Options{})
			f := &faulty{Store: open(t, dir), failure: errDisk}
			t.Cleanup(func() {
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			})
			m := run(t, ingest.Options{Broker: b, Store: f, State: state.Options{MaxTasks: 10}})
			await(t, m, "the history", func() bool { return m.Health().Ready })
			if message != nil {
				publish(t, b, message)
				await(t, m, "the message", func() bool { return m.Health().Events == 2*n })
			}
			if diff := cmp.Diff(c.Tasks(state.Query{Limit: 3 * n}).Tasks, listOf(t, m), eventsAlone()); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
			f.fail(nil)
		})
	}
}

// write writes a batch to a history in dir.
func write(t *testing.T, dir string, b history.Batch) {
	t.Helper()
	s := open(t, dir)
	if _, err := s.Write(t.Context(), b); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func listOf(t *testing.T, m *ingester) (all []state.Task) {
	t.Helper()
	for r := (history.TaskRequest{Limit: 500}); ; {
		page, err := m.read.Tasks(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, page.Tasks...); page.Next == nil {
			return all
		}
		r.From = page.Next
	}
}

func workersOf(m *ingester) (workers []state.Worker) {
	m.View(func(c state.View) { workers = c.Workers() })
	for i := range workers {
		workers[i].Status = "" // of the moment
	}
	return workers
}

func clockOf(m *ingester) (clock int64) {
	m.View(func(c state.View) { clock = c.Clock() })
	return clock
}

// slow is a store that restores when it is told to.
type slow struct {
	history.Store
	enter, leave chan struct{}
}

func (s *slow) Restore(ctx context.Context, r history.RestoreOptions) error {
	close(s.enter)
	<-s.leave
	return s.Store.Restore(ctx, r)
}

func TestNotReadyUntilRestored(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	s := &slow{Store: memoryStore(t), enter: make(chan struct{}), leave: make(chan struct{})}
	m := run(t, ingest.Options{Broker: b, Store: s})
	<-s.enter
	if h := m.Health(); h.Ready || h.Broker.Connected {
		t.Errorf("while history is restored: ready %v, broker %+v, want neither", h.Ready, h.Broker)
	}
	if _, err := m.read.Tasks(t.Context(), history.TaskRequest{Limit: 10}); err != nil {
		t.Errorf("list meanwhile: %v", err)
	}
	close(s.leave)
	await(t, m, "the broker", func() bool { return m.Health().Ready && m.Health().Broker.Connected })
	if why := m.Health().Broker.LastError; why != "" {
		t.Errorf("in the end: %q", why)
	}
}

// gated is a store that reads more tasks when it is told to, and notes when it is maintained.
type gated struct {
	history.Store
	more       chan struct{}
	maintained chan struct{}
}

func (g *gated) RestoreMore(ctx context.Context, from state.Position, _ int) ([]history.SavedTask, *state.Position, error) {
	select {
	case <-g.more:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	return g.Store.RestoreMore(ctx, from, 5)
}

func (g *gated) Run(ctx context.Context, _ func([]string)) error {
	close(g.maintained)
	<-ctx.Done()
	return nil
}

// Finished tasks are loaded while events are received. Until then lists have them, and so do events that they get.
func TestOlderTasksAreLoadedLater(t *testing.T) {
	t.Parallel()
	dir, b := t.TempDir(), inproc.New(inproc.Options{})
	const n = 30
	c := state.New(state.Options{Track: true})
	for i := range int64(n) {
		c.Apply(&state.Event{
			Kind: state.TaskSucceeded, ID: fmt.Sprint("t", i), Name: "tasks.add", Hostname: "w1", PID: 7, Clock: i + 1,
			Micros: 1_790_000_000_000_000 + i*60e6, Present: state.FieldName | state.FieldPID | state.FieldClock,
		})
	}
	var stored history.Batch
	for _, u := range c.TakeUnsaved(n) {
		stored.Tasks = append(stored.Tasks, history.Task(u))
	}
	write(t, dir, stored)
	s := &gated{open(t, dir), make(chan struct{}), make(chan struct{})}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	m := run(t, ingest.Options{Broker: b, Store: s})
	await(t, m, "the broker", func() bool { return m.Health().Ready && m.Health().Broker.Connected })
	if held := tasks(m); held != 3 || !m.Health().Restoring {
		t.Errorf("%d tasks are held at first, restoring %v, want 3 and more to come", held, m.Health().Restoring)
	}
	publish(t, b, body("started", "t10", 40), body("received", "new", 41))
	saved(t, m, 2)
	s.more <- struct{}{}
	await(t, m, "more tasks", func() bool { return tasks(m) == 3+5+2 })
	if got := len(listOf(t, m)); got != n+1 {
		t.Errorf("%d tasks are listed meanwhile, want %d", got, n+1)
	}
	select {
	case <-s.maintained:
		t.Error("the store is maintained while it is read: a task that it removes could be loaded")
	default:
	}
	before := listOf(t, m)
	close(s.more)
	<-s.maintained
	await(t, m, "all tasks", func() bool { return !m.Health().Restoring })
	m.View(func(c state.View) {
		if held := c.Counts().Tasks; held != n+1 || c.LowWaterMark() != nil {
			t.Errorf("in the end %d tasks are held, those below %v in the store alone, want all %d in memory", held, c.LowWaterMark(), n+1)
		}
		if events := c.TaskEvents("t10"); len(events) != 2 {
			t.Errorf("t10 has %d events, want the stored one and the new one", len(events))
		}
	})
	if diff := cmp.Diff(before, listOf(t, m)); diff != "" {
		t.Errorf("tasks (-while they are loaded +in memory):\n%s", diff)
	}
}

// pruning is a store that removes a task when it is told to.
type pruning struct {
	history.Store
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
	b, s := inproc.New(inproc.Options{}), &pruning{memoryStore(t), make(chan []string)}
	m := run(t, ingest.Options{Broker: b, Store: s})
	publish(t, b, body("succeeded", "old", 1), body("succeeded", "new", 2))
	saved(t, m, 2)
	changed := m.Changed()
	s.remove <- []string{"old"}
	<-changed
	if n := tasks(m); n != 1 {
		t.Errorf("%d tasks are held, want 1", n)
	}
}

// wallClock is the clock of a host that somebody sets.
type wallClock struct{ ahead atomic.Int64 }

func (c *wallClock) set(ahead time.Duration) { c.ahead.Store(int64(ahead)) }
func (c *wallClock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }

func statusOf(m *ingester, name string) (s state.Status) {
	m.View(func(c state.View) {
		if w, ok := c.Worker(name); ok {
			s = w.Status
		}
	})
	return s
}

// TestRatesCountWhatABrokerHasHeldWhereItHappened receives the tasks and heartbeats of ten minutes at once.
func TestRatesCountWhatABrokerHasHeldWhereItHappened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Hour) // timestamps before 2000 are not taken
		b, now := inproc.New(inproc.Options{}), time.Now()
		m := run(t, ingest.Options{Broker: b, Store: memoryStore(t)})
		const n = 600
		for i := range n {
			at, clock := now.Add(time.Duration(i-n+1)*time.Second).Unix(), 2*i
			publish(t, b, fmt.Appendf(nil, `{"type":"worker-heartbeat","hostname":"w1","pid":7,"clock":%d,"freq":2.0,"timestamp":%d}`, clock+1, at),
				fmt.Appendf(nil, `{"type":"task-succeeded","hostname":"w1","pid":7,"clock":%d,"timestamp":%d,"uuid":"t%d"}`, clock+2, at, i))
		}
		saved(t, m, 2*n)
		<-time.After(time.Second)
		got, late := m.Rates().Series.Succeeded, 0.0
		for i, count := range got[:len(got)-4] {
			if count != 1 {
				t.Errorf("%d s ago %v tasks succeeded, want 1", len(got)-i, count)
			}
		}
		for _, count := range got[len(got)-4:] {
			late += count
		}
		if late < 3 || late > 4 {
			t.Errorf("%v tasks succeeded in the last 4 s, want 4 at most", late)
		}
	})
}

// TestAClockThatIsSet sets the host's wall clock ahead by an hour, then back, twice. Whoever falls silent is late all the
// same, whoever does not is not, and what happens is counted and saved.
func TestAClockThatIsSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var wall wallClock
		b, s := inproc.New(inproc.Options{}), memoryStore(t)
		m := run(t, ingest.Options{Broker: b, Store: s, Now: wall.now})
		clock, sent := 0, uint64(0)
		beat := func(names ...string) {
			for _, name := range names {
				clock++
				sent += 2
				publish(t, b, fmt.Appendf(nil, `{"type":"worker-heartbeat","hostname":%q,"pid":7,"clock":%d,"freq":2.0,"timestamp":%d}`, name, 2*clock, time.Now().Unix()),
					fmt.Appendf(nil, `{"type":"task-received","hostname":%q,"pid":7,"clock":%d,"timestamp":%d,"uuid":"t%d"}`, name, 2*clock+1, time.Now().Unix(), clock))
			}
			<-time.After(time.Second)
		}
		beat("dead")
		for range 20 {
			beat("alive")
		}
		for i, ahead := range []time.Duration{time.Hour, 0, -time.Hour, 0} {
			silent := fmt.Sprint("silent ", i)
			beat(silent)
			wall.set(ahead)
			for second := range 30 {
				beat("alive")
				if alive, dead := statusOf(m, "alive"), statusOf(m, "dead"); alive != state.Online || dead != state.Offline {
					t.Fatalf("%v ahead, after %d s: alive is %s and dead %s, want online and offline", ahead, second, alive, dead)
				}
				if r := m.Rates(); r.Received < 0.8 || r.Received > 1.2 {
					t.Fatalf("%v ahead, after %d s: %v tasks received a second, want about 1", ahead, second, r.Received)
				}
			}
			if got := statusOf(m, silent); got != state.Offline {
				t.Errorf("%v ahead: a worker that is silent for 30 s is %s, want offline", ahead, got)
			}
			m.View(func(c state.View) {
				if w, _ := c.Worker("dead"); wall.now().Sub(time.UnixMicro(w.LastHeartbeatAt)) > 5*time.Minute {
					t.Errorf("%v ahead: dead was heard at %v, it is %v", ahead, time.UnixMicro(w.LastHeartbeatAt), wall.now())
				}
			})
		}
		saved(t, m, sent)
	})
}

// TestAClockThatIsSetBetweenProcesses restarts Umbel with the wall clock an hour off from what it was.
func TestAClockThatIsSetBetweenProcesses(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{"ahead": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var wall wallClock
				b, s := inproc.New(inproc.Options{}), memoryStore(t)
				first, err := newIngester(ingest.Options{Broker: b, Store: s, Now: wall.now})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- first.Run(ctx) }()
				beat := func(name string, clock int) {
					publish(t, b, fmt.Appendf(nil, `{"type":"worker-heartbeat","hostname":%q,"pid":7,"clock":%d,"freq":2.0,"timestamp":%d}`, name, clock, time.Now().Unix()))
				}
				beat("alive", 1)
				beat("dead", 1)
				saved(t, first, 2)
				cancel()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				wall.set(ahead)
				second := run(t, ingest.Options{Broker: b, Store: s, Now: wall.now})
				beat("alive", 2)
				await(t, second, "the heartbeat", func() bool { return second.Health().Events == 1 })
				if alive, dead := statusOf(second, "alive"), statusOf(second, "dead"); alive != state.Online || dead != state.Offline {
					t.Errorf("alive is %s and dead %s, want online and offline", alive, dead)
				}
			})
		})
	}
}
