package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/monitor/simulate"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryStore opens a history that is gone after the test.
func memoryStore(t *testing.T) history.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close history: %v", err)
		}
	})
	return s
}

// start runs a monitor on a broker, with a history in memory, until the test ends.
func start(t *testing.T, b broker.Broker, with ...func(o *ingest.Options)) *ingester {
	t.Helper()
	o := ingest.Options{Broker: b, Store: memoryStore(t), EnableEvents: true}
	for _, f := range with {
		f(&o)
	}
	return run(t, o)
}

// control sends the methods that are broadcast on.
type control chan string

func (c control) Broadcast(ctx context.Context, method string) error {
	select {
	case c <- method:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ingester is an Ingester with a Reader of its cluster.
type ingester struct {
	*ingest.Ingester
	read *view.Reader
}

func newIngester(o ingest.Options) (*ingester, error) {
	m, err := ingest.New(o)
	if err != nil {
		return nil, err
	}
	m.RestoreFirst(3) // the others are loaded while tests run
	store, _ := o.Store.(view.Store)
	read, err := view.New(m, store, o.Now)
	return &ingester{m, read}, err
}

// run runs a monitor until the test ends.
func run(t *testing.T, o ingest.Options) *ingester {
	t.Helper()
	m, err := newIngester(o)
	if err != nil {
		t.Fatal(err)
	}
	runUntilEnd(t, m)
	return m
}

// runUntilEnd runs m until the test ends.
func runUntilEnd(t *testing.T, m *ingester) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil after an orderly stop", err)
		}
	})
}

// waitTimeout bounds every wait for something that should happen soon, on a machine that is busy.
const waitTimeout = 3 * time.Minute

// await waits for a change after which ok holds.
func await(t *testing.T, m *ingester, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(waitTimeout)
	for {
		changed := m.Changed()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func body(kind, id string, clock int) []byte {
	return fmt.Appendf(nil, `{"type":"task-%s","hostname":"w1","pid":7,"clock":%d,"timestamp":%d,"uuid":"%s"}`, kind, clock, 1790000000+clock, id)
}

func publish(t *testing.T, b *inproc.Broker, bodies ...[]byte) {
	t.Helper()
	for _, body := range bodies {
		if err := b.Publish(t.Context(), broker.Message{Body: body, ContentType: "application/json"}); err != nil {
			t.Fatal(err)
		}
	}
}

func tasks(m *ingester) (n int) {
	m.View(func(c state.View) { n = c.Counts().Tasks })
	return n
}

func TestEventsReachReaders(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	m := start(t, b)
	publish(t, b, body("received", "a", 1), []byte("["+string(body("started", "a", 2))+","+string(body("received", "b", 3))+"]"))
	await(t, m, "two tasks", func() bool { return tasks(m) == 2 })
	if h := m.Health(); h.Events != 3 || h.Messages != 2 || !h.Broker.Connected || h.Broker.LastEventAt.IsZero() || !h.Ready {
		t.Errorf("health = %+v, want 3 events of 2 messages, connected and ready", h)
	}
}

func TestEachEndIsToldOnce(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	var told []string // by Run alone, until it has returned
	t.Cleanup(func() {
		if want := []string{"a", "b"}; !slices.Equal(told, want) {
			t.Errorf("ends of %q were told, want those of %q", told, want)
		}
	})
	m := start(t, b, func(o *ingest.Options) {
		o.Ended = func(task, _ string, _ int64) { told = append(told, strings.Clone(task)) }
	})
	publish(t, b, body("received", "a", 1), body("started", "a", 2), body("succeeded", "a", 3), body("succeeded", "a", 3), body("failed", "b", 4))
	await(t, m, "all events", func() bool { return m.Health().Events == 5 })
}

func TestWorkersAreAskedForHeartbeatsAndEvents(t *testing.T) {
	t.Parallel()
	methods := make(control, 2)
	start(t, inproc.New(inproc.Options{}), func(o *ingest.Options) { o.Control = methods })
	for _, want := range []string{"heartbeat", "enable_events"} {
		if got := <-methods; got != want {
			t.Errorf("command %q, want %q", got, want)
		}
	}
}

// leader leads once it is told to.
type leader struct {
	leads   atomic.Bool
	changed chan struct{}
}

func (l *leader) Leads() bool { return l.leads.Load() }

func (l *leader) Changed() <-chan struct{} {
	if l.Leads() {
		return nil
	}
	return l.changed
}

func TestOnlyTheLeaderAsksForTaskEvents(t *testing.T) {
	t.Parallel()
	methods := make(control, 8)
	l := &leader{changed: make(chan struct{})}
	b := inproc.New(inproc.Options{})
	m := start(t, b, func(o *ingest.Options) { o.Control, o.Leader = methods, l })
	if got := <-methods; got != "heartbeat" {
		t.Errorf("command %q, want heartbeat", got)
	}
	publish(t, b, []byte(`{"type":"worker-heartbeat","hostname":"w1","pid":9,"clock":1,"freq":2.0,"timestamp":1790000002}`))
	await(t, m, "the worker", func() bool { return m.Health().Events == 1 })
	select {
	case got := <-methods:
		t.Errorf("while another leads, workers were sent %q", got)
	default:
	}
	l.leads.Store(true)
	close(l.changed)
	if got := <-methods; got != "enable_events" {
		t.Errorf("as leader: command %q, want enable_events", got)
	}
}

func TestWorkersThatComeLaterAreAskedForTaskEvents(t *testing.T) {
	t.Parallel()
	methods := make(control, 8)
	b := inproc.New(inproc.Options{})
	start(t, b, func(o *ingest.Options) { o.Control = methods })
	<-methods
	<-methods
	publish(t, b, []byte(`{"type":"worker-online","hostname":"late","pid":9,"clock":1,"timestamp":1790000000}`))
	for beat := range 5 {
		publish(t, b, fmt.Appendf(nil, `{"type":"worker-heartbeat","hostname":"late","pid":9,"clock":%d,"freq":2.0,"timestamp":%d}`, beat+2, 1790000002+beat))
		if beat == 0 || beat == 2 {
			if got := <-methods; got != "enable_events" {
				t.Errorf("after heartbeat %d: command %q, want enable_events", beat+1, got)
			}
		}
	}
	select {
	case got := <-methods:
		t.Errorf("a known worker was sent %q", got)
	default:
	}
}

func TestHostileMessagesAreCountedAndCostNothing(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	m := start(t, b)
	if err := b.Publish(t.Context(), broker.Message{Body: []byte("\x80\x04."), ContentType: "application/x-python-serialize"}); err != nil {
		t.Fatal(err)
	}
	publish(t, b, []byte("not json"), []byte(`{"type":"task-started"}`), []byte("[]"), body("received", "a", 1))
	await(t, m, "the good task", func() bool { return tasks(m) == 1 })
	want := map[string]uint64{celery.CausePickle: 1, celery.CauseMalformed: 1, celery.CauseHostname: 1}
	if diff := cmp.Diff(want, m.Health().Rejected); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
}

// failing refuses a number of connections before it lets the broker answer.
type failing struct {
	broker.Broker
	mu   sync.Mutex
	left int
}

func (f *failing) Subscribe(ctx context.Context) (broker.EventStream, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left > 0 {
		f.left--
		return nil, errors.New("connection refused")
	}
	return f.Broker.Subscribe(ctx)
}

func TestALostBrokerIsRedialledAndReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &failing{Broker: inproc.New(inproc.Options{}), left: 8}
		m, err := newIngester(ingest.Options{Broker: b, Store: memoryStore(t)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		began := time.Now()
		go func() { done <- m.Run(ctx) }()
		synctest.Wait()
		h := m.Health().Broker
		if h.Connected || h.LastError != "connection refused" || h.Attempts != 1 || !h.NextAttemptAt.After(began) || h.NextAttemptAt.Sub(began) > 2*time.Second {
			t.Errorf("after one refusal: %+v", h)
		}
		if !m.Health().Ready {
			t.Error("not ready without a broker: pages could not say so")
		}
		for !m.Health().Broker.Connected {
			changed := m.Changed()
			<-changed
		}
		if took := time.Since(began); took < 4*time.Second || took > 3*time.Minute {
			t.Errorf("connected after 8 refusals and %v, want a back-off between 4 s and 3 min", took)
		}
		if h := m.Health().Broker; h.LastError != "" || h.Attempts != 0 || !h.NextAttemptAt.IsZero() {
			t.Errorf("after connecting: %+v", h)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestWorkersGrowLateWhileNothingArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{})
		m, err := newIngester(ingest.Options{Broker: b, Store: memoryStore(t)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		publish(t, b, fmt.Appendf(nil, `{"type":"worker-heartbeat","hostname":"w1","pid":7,"clock":1,"freq":2.0,"timestamp":%d}`, time.Now().Unix()))
		status := func() (s state.Status) {
			m.View(func(c state.View) {
				if w, ok := c.Worker("w1"); ok {
					s = w.Status
				}
			})
			return s
		}
		for _, want := range []state.Status{state.Online, state.Late, state.Offline} {
			for status() != want {
				<-m.Changed()
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

// TestNothingIsLostAcrossReconnects breaks the session again and again while a story is told: in the end the
// picture is the truth.
func TestNothingIsLostAcrossReconnects(t *testing.T) {
	t.Parallel()
	story, err := simulate.New(simulate.Options{
		Seed: 3, Rate: 50, Start: time.Now().Add(-time.Hour), Length: time.Minute, Truth: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	b := inproc.New(inproc.Options{})
	m := start(t, b)
	n := 0
	for d, ok := story.Next(); ok; d, ok = story.Next() {
		publish(t, b, d.Body)
		if n++; n%500 == 0 {
			b.Fail(errors.New("cable pulled"))
		}
	}
	publish(t, b, body("received", "last", 1))
	await(t, m, "the last task", func() (ok bool) {
		m.View(func(c state.View) { _, ok = c.Task("last") })
		return ok
	})
	wrong := 0
	m.View(func(c state.View) {
		for _, want := range story.Truth() {
			if got, ok := c.Task(want.ID); !ok || got.State != want.State {
				wrong++
			}
		}
	})
	if wrong > 0 {
		t.Errorf("%d of %d tasks differ from the truth", wrong, len(story.Truth()))
	}
}

func TestReadersAndWriterShare(t *testing.T) {
	t.Parallel()
	b := inproc.New(inproc.Options{})
	m := start(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for ctx.Err() == nil {
				m.View(func(c state.View) {
					c.Tasks(state.Query{Limit: 20, Text: "t"})
					c.Workers()
					c.Counts()
					c.Names()
					c.TaskEvents("t1")
				})
				m.Health()
				m.Rates()
			}
		})
	}
	for i := range 500 {
		publish(t, b, body("received", fmt.Sprint("t", i), i+1))
	}
	await(t, m, "all tasks", func() bool { return tasks(m) == 500 })
	cancel()
	readers.Wait()
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	b, s := inproc.New(inproc.Options{}), memoryStore(t)
	for name, o := range map[string]ingest.Options{
		"no broker":      {Store: s},
		"no store":       {Broker: b},
		"negative limit": {Broker: b, Store: s, State: state.Options{MaxTasks: -1}},
	} {
		if _, err := newIngester(o); err == nil {
			t.Errorf("%s: New succeeded", name)
		}
	}
}
