package beat_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/beat"
)

// tables is a source that counts how often it was read.
type tables struct {
	mu    sync.Mutex
	reads int
	err   error
}

func (*tables) Name() string   { return "shop" }
func (*tables) String() string { return "sqlite:////shop.db" }
func (*tables) Close() error   { return nil }

func (s *tables) Read(context.Context) (beat.Table, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return beat.Table{Entries: []beat.Entry{{ID: int64(s.reads)}}}, s.err
}

func TestWatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &tables{}
		w, err := beat.New(beat.Options{Sources: []beat.Source{s}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		}()
		reads := func(what string, after time.Duration, want int) {
			t.Helper()
			<-time.After(after)
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.reads != want {
				t.Errorf("%s: read %d times, want %d", what, s.reads, want)
			}
		}
		reads("at the start", 0, 1)
		reads("by itself", 16*time.Second, 2)
		w.Snapshot()
		reads("nothing is old", time.Second, 2)
		<-time.After(6 * time.Second)
		changed := w.Changed()
		w.Snapshot()
		reads("somebody looks", 0, 3)
		select {
		case <-changed:
		default:
			t.Error("a reading changed nothing")
		}
		s.mu.Lock()
		s.err = errors.New("no")
		s.mu.Unlock()
		reads("fails", 16*time.Second, 4)
		if r := w.Snapshot()[0]; r.Err == nil || r.FailedAt.IsZero() || r.Table.Entries[0].ID != 3 {
			t.Errorf("after a failure: %+v, want the error and the last table", r)
		}
	})
}

func TestSourcesWithOneName(t *testing.T) {
	t.Parallel()
	if _, err := beat.New(beat.Options{Sources: []beat.Source{&tables{}, &tables{}}}); err == nil {
		t.Error("two sources with one name are accepted")
	}
}
