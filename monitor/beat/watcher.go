package beat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	readInterval   = 15 * time.Second
	demandInterval = 5 * time.Second // while somebody looks
	readTimeout    = 10 * time.Second
	maxSources     = 16
)

// Options of a Watcher. Sources are required; their names differ.
type Options struct {
	Sources []Source
	Now     func() time.Time // time.Now if nil
	Logger  *slog.Logger     // nil discards
}

// Watcher reads tables of django-celery-beat every 15 s, and on demand. It is safe for concurrent use.
type Watcher struct {
	sources []Source
	now     func() time.Time
	log     *slog.Logger
	wake    []chan struct{} // by source: read at once

	mu      sync.Mutex
	state   []Reading // its elements are replaced whole
	changed chan struct{}
}

// Reading is what is known of the tables of one database.
type Reading struct {
	Name, URL string
	Table     Table     // of the last reading that succeeded
	ReadAt    time.Time // of it; zero if none has
	TriedAt   time.Time // when reading was tried last
	Err       *Error    // why that failed, nil if it succeeded
	FailedAt  time.Time // since when readings fail
}

// New checks o and starts nothing.
func New(o Options) (*Watcher, error) {
	if err := Check(o.Sources); err != nil {
		return nil, err
	}
	w := &Watcher{sources: o.Sources, now: o.Now, log: o.Logger, changed: make(chan struct{})}
	if w.now == nil {
		w.now = time.Now
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	for _, s := range o.Sources {
		w.state = append(w.state, Reading{Name: s.Name(), URL: s.String()})
		w.wake = append(w.wake, make(chan struct{}, 1))
	}
	return w, nil
}

// Check returns an error unless sources can be watched together.
func Check(sources []Source) error {
	if len(sources) > maxSources {
		return fmt.Errorf("%d databases of django-celery-beat: at most %d", len(sources), maxSources)
	}
	names := map[string]bool{}
	for _, s := range sources {
		if names[s.Name()] {
			return fmt.Errorf("two databases of django-celery-beat are named %s: add ?name=… to one of the URLs", s.Name())
		}
		names[s.Name()] = true
	}
	return nil
}

// Snapshot returns what is known, in the order of the sources, and has what is older than 5 s read again soon.
func (w *Watcher) Snapshot() []Reading {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	list := make([]Reading, len(w.state))
	for i, r := range w.state {
		list[i] = r
		if !r.TriedAt.IsZero() && now.Sub(r.TriedAt) > demandInterval {
			select {
			case w.wake[i] <- struct{}{}:
			default: // it is going to
			}
		}
	}
	return list
}

// Changed returns a channel that is closed at the next change of Snapshot.
func (w *Watcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Run reads until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	var g errgroup.Group
	for i := range w.sources {
		g.Go(func() error {
			w.watch(ctx, i)
			return nil
		})
	}
	return g.Wait()
}

func (w *Watcher) watch(ctx context.Context, i int) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.wake[i]:
		}
		w.read(ctx, i)
		timer.Reset(readInterval)
	}
}

func (w *Watcher) read(ctx context.Context, i int) {
	within, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	t, err := w.sources[i].Read(within)
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r, now := &w.state[i], w.now()
	r.TriedAt = now
	if err == nil {
		r.Table, r.ReadAt, r.Err, r.FailedAt = t, now, nil, time.Time{}
	} else {
		if r.Err == nil {
			r.FailedAt = now
			w.log.Warn("schedules of django-celery-beat not read", "database", r.Name, "error", err)
		}
		r.Err = asError(err)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Text: "The tables of django-celery-beat cannot be read.", Err: err}
}

// Close closes the sources, after Run has returned.
func (w *Watcher) Close() error {
	var err error
	for _, s := range w.sources {
		err = errors.Join(err, s.Close())
	}
	return err
}
