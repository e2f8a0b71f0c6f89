// Package testcluster folds the events that a test applies and saves the tasks in a history in memory, for tests of what
// readers see.
package testcluster

import (
	"context"
	"sync"
	"testing"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
)

// Cluster is a cluster with its history. It is safe for concurrent use.
type Cluster struct {
	*view.Reader
	DB     *sqlite.DB
	t      testing.TB
	saves  bool
	saving sync.Mutex // held until what was changed is saved
	source *source
}

// New returns an empty cluster. Its history is closed when the test ends.
func New(t testing.TB, o state.Options) *Cluster {
	t.Helper()
	o.Track = true
	return Open(t, sqlite.Memory, o)
}

// Open returns a cluster with the history of a directory. It saves what changes if o tracks that.
func Open(t testing.TB, dir string, o state.Options) *Cluster {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close history: %v", err)
		}
	})
	c := &Cluster{DB: db, t: t, saves: o.Track, source: &source{cluster: state.New(o), changed: make(chan struct{})}}
	if c.Reader, err = view.New(c.source, db, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// Apply folds events, and saves and counts what they change.
func (c *Cluster) Apply(events ...*state.Event) {
	c.t.Helper()
	c.Update(func(cluster *state.Cluster) {
		for _, e := range events {
			c.source.minutes.Add(e, cluster.Apply(e))
		}
	})
}

// Update calls f with the cluster, and saves the tasks that it changes. Readers of the history may read the cluster meanwhile.
func (c *Cluster) Update(f func(cluster *state.Cluster)) {
	c.t.Helper()
	c.saving.Lock()
	defer c.saving.Unlock()
	defer c.source.Notify()
	s := c.source
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.cluster)
	for c.saves && (s.cluster.Unsaved() > 0 || s.minutes.Changed()) {
		b := history.Batch{Checkpoint: &history.Checkpoint{Rollups: s.minutes.Take()}}
		for _, u := range s.cluster.TakeUnsaved(s.cluster.Unsaved()) {
			b.Tasks = append(b.Tasks, history.Task(u))
		}
		s.mu.Unlock()
		written, err := c.DB.Write(context.Background(), b)
		s.mu.Lock()
		if err == nil {
			err = s.cluster.Saved(true, written.Existing)
		}
		if err != nil {
			c.t.Errorf("save: %v", err)
			return
		}
	}
}

// source is a cluster that a view reads.
type source struct {
	mu      sync.Mutex // guards all fields
	cluster *state.Cluster
	minutes rollup.Recorder
	changed chan struct{}
}

func (s *source) View(f func(c state.View)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.cluster)
}

func (s *source) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *source) Notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (*source) Restored() bool      { return true }
func (*source) Health() view.Health { return view.Health{} }
func (*source) Rates() view.Rates   { return view.Rates{} }
