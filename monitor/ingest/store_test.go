package ingest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/internal/eventgen"
	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/state"
)

var errDisk = errors.New("disk full")

// faulty is a store whose writes can be made to fail. Those that fail late have been carried out.
type faulty struct {
	history.Store

	mu      sync.Mutex
	failure error
	late    bool
	writes  []history.Batch
}

func (f *faulty) Write(ctx context.Context, b history.Batch) (history.WriteResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes = append(f.writes, b)
	switch {
	case f.failure == nil:
		return f.Store.Write(ctx, b)
	case f.late:
		if _, err := f.Store.Write(ctx, b); err != nil {
			return history.WriteResult{}, err
		}
	}
	return history.WriteResult{}, f.failure
}

func (f *faulty) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failure = err
}

// tried returns what was to be written so far.
func (f *faulty) tried() []history.Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clip(f.writes)
}

// watched is a broker that notes acknowledgements.
type watched struct {
	broker.Broker
	mu    sync.Mutex
	acked uint64
}

func (w *watched) Subscribe(ctx context.Context) (broker.EventStream, error) {
	s, err := w.Broker.Subscribe(ctx)
	return &watchedSession{s, w}, err
}

func (w *watched) newest() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}

type watchedSession struct {
	broker.EventStream
	broker *watched
}

func (s *watchedSession) Ack(tag uint64) error {
	err := s.EventStream.Ack(tag)
	if err == nil {
		s.broker.mu.Lock()
		defer s.broker.mu.Unlock()
		s.broker.acked = max(s.broker.acked, tag)
	}
	return err
}

// poll asks ok again and again until it holds.
func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(waitTimeout)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// saved waits until n events were folded, and everything is in the store.
func saved(t *testing.T, m *ingester, n uint64) {
	t.Helper()
	poll(t, fmt.Sprintf("%d events to be written", n), func() bool {
		h := m.Health()
		return h.Events >= n && h.Store.PendingEvents == 0 && h.Store.UnsavedTasks == 0
	})
}

func open(t *testing.T, dir string) history.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMessagesAreAcknowledgedOnceTheyAreWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, s := &watched{Broker: inproc.New(inproc.Options{})}, &faulty{Store: memoryStore(t)}
		s.fail(errDisk)
		m := run(t, ingest.Options{Broker: b, Store: s})
		publish(t, b.Broker.(*inproc.Broker), body("received", "a", 1), body("received", "a", 1), []byte("not json"), body("started", "a", 2))
		await(t, m, "a failed write", func() bool { return m.Health().Store.LastError != "" })
		began := time.Now()
		h := m.Health().Store
		if h.LastError != errDisk.Error() || h.PendingEvents != 2 || h.UnsavedTasks != 1 || h.Since.IsZero() || !h.NextAttemptAt.After(began) {
			t.Errorf("after a failed write: %+v, want why, since when, what waits and when it is tried again", h)
		}
		for time.Since(began) < time.Minute {
			<-m.Changed()
		}
		synctest.Wait()
		if h := m.Health().Store; !h.Since.Before(began.Add(time.Second)) || h.FailedAt.Before(began.Add(30*time.Second)) || h.PendingEvents != 2 {
			t.Errorf("after a minute: %+v, want trouble since the beginning", h)
		}
		if n := len(s.tried()); n < 6 || n > 200 {
			t.Errorf("tried %d times in a minute, want more and more seldom", n)
		}
		if b.newest() != 0 {
			t.Fatalf("messages up to %d are acknowledged and not written", b.newest())
		}
		s.fail(nil)
		for b.newest() != 4 {
			<-m.Changed()
			synctest.Wait()
		}
		<-time.After(time.Second)
		synctest.Wait()
		if h := m.Health().Store; h != (ingest.StoreHealth{}) {
			t.Errorf("after a write: %+v, want no trouble and nothing that waits", h)
		}
		var journals []string
		for _, w := range s.tried() {
			if len(w.Journal) > 0 {
				journals = append(journals, string(w.Journal))
			}
		}
		for _, j := range journals {
			if j != journals[0] {
				t.Fatalf("journal was repeated as %q, want %q as at first", j, journals[0])
			}
		}
	})
}

func TestBackpressureHoldsTheBrokerBack(t *testing.T) {
	t.Parallel()
	b, s := inproc.New(inproc.Options{Limit: 64}), &faulty{Store: memoryStore(t)}
	s.fail(errDisk)
	m, err := newIngester(ingest.Options{Broker: b, Store: s})
	if err != nil {
		t.Fatal(err)
	}
	const most, size, all = 1 << 20, 10_000, 400
	m.HoldAt(most)
	runUntilEnd(t, m)
	large := strings.Repeat("x", size)
	ctx, cancel := context.WithCancel(t.Context())
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for i := range all {
			body := fmt.Appendf(nil, `{"type":"task-received","hostname":"w1","clock":%d,"timestamp":1790000000,"uuid":"%d","args":%q}`, i+1, i, large)
			if b.Publish(ctx, broker.Message{Body: body, ContentType: "application/json"}) != nil {
				return
			}
		}
	})
	poll(t, "the intake to be full", func() bool { return m.Health().Store.Backpressure })
	if held := m.Health().Events; held > most/size+64 { // and the batch that it was filled by
		t.Errorf("%d events of %d bytes wait in memory, want at most %d bytes", held, size, most)
	}
	s.fail(nil)
	saved(t, m, all)
	cancel()
	publishing.Wait()
	if got := m.Health(); got.Events != all || got.Store.Backpressure {
		t.Errorf("in the end %d events were folded, full %v, want %d and room", got.Events, got.Store.Backpressure, all)
	}
}

// TestNothingIsLostByCrashes lets monitors die without a last write, again and again, and breaks the disk and the
// broker on the way. In the end, every task is what a monitor shows that saw everything at once.
func TestNothingIsLostByCrashes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { crash(t, seed) })
		})
	}
}

func crash(t *testing.T, seed uint64) {
	t.Helper()
	dir := t.TempDir()
	b := inproc.New(inproc.Options{Limit: 1 << 20})
	var bodies []json.RawMessage
	for i := range uint64(10) {
		bodies = append(bodies, eventgen.New(seed*100+i, eventgen.Options{Tasks: 12, Deaths: true, Custom: true, Revoked: true}).Events...)
	}
	want := whole(bodies)
	const lives = 8
	for life := range lives {
		part := bodies[life*len(bodies)/lives : (life+1)*len(bodies)/lives]
		s := open(t, dir)
		f := &faulty{Store: s, late: seed%2 == 1}
		m, err := newIngester(ingest.Options{Broker: b, Store: f, State: state.Options{MaxTasks: 1 + int(seed)*4}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		for i, body := range part {
			publish(t, b, body)
			switch {
			case i%7 == int(seed)%7:
				<-time.After(time.Duration(i%5) * 100 * time.Millisecond)
			case i == len(part)/3:
				b.Fail(errors.New("cable pulled"))
			case i == len(part)/2:
				f.fail(errDisk)
			case i == 2*len(part)/3 && life%2 == 0:
				f.fail(nil)
			}
		}
		if last := life == lives-1; last {
			f.fail(nil)
			publish(t, b, body("received", "last", 1))
			poll(t, "the last task", func() bool { _, err := m.read.Task(t.Context(), "last"); return err == nil })
			saved(t, m, 1)
			same(t, m, want)
		} else {
			f.fail(errDisk) // the process is killed: nothing is written any more
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// whole folds events by themselves.
func whole(bodies []json.RawMessage) *state.Cluster {
	c := state.New(state.Options{})
	fold(c, bodies)
	return c
}

// same compares the tasks that a monitor shows with those of a cluster, as far as their events decide.
func same(t *testing.T, m *ingester, want *state.Cluster) {
	t.Helper()
	n := 0
	for from := (*state.Position)(nil); ; {
		page := want.Tasks(state.Query{Limit: 500, From: from})
		for _, w := range page.Tasks {
			got, err := m.read.Task(t.Context(), w.ID)
			if err != nil {
				t.Fatalf("task %s: %v", w.ID, err)
			}
			if diff := cmp.Diff(w, got, eventsAlone()); diff != "" {
				t.Errorf("task %s (-want +got):\n%s", w.ID, diff)
			}
			n++
		}
		if from = page.Older; from == nil {
			break
		}
	}
	if n == 0 {
		t.Error("no tasks were compared")
	}
}

// eventsAlone compares tasks without what depends on when their events came and what else is known.
func eventsAlone() cmp.Option {
	return cmp.Options{
		cmpopts.EquateEmpty(), cmpopts.IgnoreFields(state.Task{}, "Stamp", "Children", "WaitSeconds", "Orphaned", "Returned", "OrphanReason", "Lost"),
	}
}

// fold decodes and folds events.
func fold(c *state.Cluster, bodies []json.RawMessage) {
	var d celery.Decoder
	for _, body := range bodies {
		d.Decode(body, 0, func(e *state.Event) { c.Apply(e) })
	}
}
