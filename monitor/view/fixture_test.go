package view_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/ingest"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a Reader of events that the test publishes.
type cluster struct {
	*view.Reader
	t      *testing.T
	broker *inproc.Broker
	store  *store
	events uint64 // published so far
}

// newCluster runs an ingester on a history in memory until the test ends.
func newCluster(t *testing.T, limits state.Options) *cluster {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, broker: inproc.New(inproc.Options{Limit: 1 << 20}), store: &store{Store: db}}
	in, err := ingest.New(ingest.Options{Broker: c.broker, Store: c.store, State: limits})
	if err != nil {
		t.Fatal(err)
	}
	if c.Reader, err = view.New(in, c.store, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- in.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, db.Close()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return c
}

// publish publishes events and waits until they are folded.
func (c *cluster) publish(events ...json.RawMessage) {
	c.t.Helper()
	for _, e := range events {
		if err := c.broker.Publish(c.t.Context(), broker.Message{Body: e, ContentType: "application/json"}); err != nil {
			c.t.Fatal(err)
		}
	}
	c.events += uint64(len(events))
	for {
		changed := c.Changed()
		if c.Health().Events == c.events {
			return
		}
		<-changed
	}
}

// save waits until everything is in the store.
func (c *cluster) save() {
	c.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for h := c.Health(); h.Store.PendingEvents+h.Store.UnsavedTasks > 0; h = c.Health() {
		<-tick.C
	}
}

// store is a history whose disk may be full.
type store struct {
	history.Store
	full atomic.Bool
	read func() // called once a page of tasks is read, if set
}

func (s *store) Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error) {
	page, err := s.Store.Tasks(ctx, r)
	if s.read != nil {
		s.read()
	}
	return page, err
}

var errFull = errors.New("disk full")

func (s *store) Write(ctx context.Context, b history.Batch) (history.WriteResult, error) {
	if s.full.Load() {
		return history.WriteResult{}, errFull
	}
	return s.Store.Write(ctx, b)
}
