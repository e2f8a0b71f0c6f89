package outboxwatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/internal/retry"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/redact"
)

const (
	readInterval = 5 * time.Second
	readShare    = 20          // the wait is at least so many times as long as the reading took
	maxWait      = time.Minute // between attempts while a database is away
	readTimeout  = 10 * time.Second
)

// MaxSources is how many outboxes one Watcher watches.
const MaxSources = 16

// Options of a Watcher. Sources are required; their names differ.
type Options struct {
	Sources  []Source
	Samples  history.OutboxSamples // nil keeps none
	Now      func() time.Time      // of samples; time.Now if nil
	Redactor *redact.Redactor      // takes secrets out of payloads; nil has the defaults
	Logger   *slog.Logger          // nil discards
}

// Watcher reads outboxes every 5 s. It is safe for concurrent use.
type Watcher struct {
	sources  []Source
	samples  history.OutboxSamples
	now      func() time.Time
	redactor *redact.Redactor
	log      *slog.Logger
	wake     []chan struct{} // by source: read at once

	mu      sync.Mutex
	state   []Outbox // replaced whole, never changed
	changed chan struct{}
	traced  []traces // by source
	// lookedUp is when tasks were last looked up.
	lookedUp map[string]time.Time
}

// Outbox is what is known of one outbox.
type Outbox struct {
	Name, URL string
	Stats     Stats     // of the last reading that succeeded
	ReadAt    time.Time // of it, by Umbel's clock; zero if none has
	Relay     Relay
	Err       *Error    // why the last reading failed, nil if it succeeded
	FailedAt  time.Time // since when readings fail
}

// New checks o and starts nothing.
func New(o Options) (*Watcher, error) {
	if len(o.Sources) == 0 {
		return nil, errors.New("no outbox to watch")
	}
	if err := Check(o.Sources); err != nil {
		return nil, err
	}
	w := &Watcher{sources: o.Sources, samples: o.Samples, now: o.Now, redactor: o.Redactor, log: o.Logger, changed: make(chan struct{})}
	if w.now == nil {
		w.now = time.Now
	}
	if w.redactor == nil {
		w.redactor = redact.Default()
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	for _, s := range o.Sources {
		w.state = append(w.state, Outbox{Name: s.Name(), URL: s.String()})
		w.wake = append(w.wake, make(chan struct{}, 1))
		w.traced = append(w.traced, traces{})
	}
	return w, nil
}

// Check returns an error unless sources can be watched together.
func Check(sources []Source) error {
	if len(sources) > MaxSources {
		return fmt.Errorf("%d outboxes to watch: at most %d", len(sources), MaxSources)
	}
	names := map[string]bool{}
	for _, s := range sources {
		if names[s.Name()] {
			return fmt.Errorf("two outboxes are named %s: add ?name=… to one of the URLs", s.Name())
		}
		names[s.Name()] = true
	}
	return nil
}

// Snapshot returns what is known of every outbox, in the order of the sources. It must not be changed.
func (w *Watcher) Snapshot() []Outbox {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// Changed returns a channel that is closed at the next change of Snapshot.
func (w *Watcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Source returns the source of a name, ErrUnknownSource if there is none.
func (w *Watcher) Source(name string) (Source, error) {
	i := w.index(name)
	if i < 0 {
		return nil, ErrUnknownSource
	}
	return w.sources[i], nil
}

func (w *Watcher) index(name string) int {
	for i, s := range w.sources {
		if s.Name() == name {
			return i
		}
	}
	return -1
}

// Refresh reads an outbox soon, such as after it was changed.
func (w *Watcher) Refresh(name string) {
	if i := w.index(name); i >= 0 {
		select {
		case w.wake[i] <- struct{}{}:
		default: // it is going to
		}
	}
}

// Close closes the sources, after Run has returned and the last reader has.
func (w *Watcher) Close() error {
	var err error
	for _, s := range w.sources {
		err = errors.Join(err, s.Close())
	}
	return err
}

// Run reads until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	var g errgroup.Group
	for i := range w.sources {
		g.Go(func() error { return w.watch(ctx, i) })
	}
	return g.Wait()
}

// watch reads one outbox until ctx ends.
func (w *Watcher) watch(ctx context.Context, i int) error {
	var relay relayWatch
	var sampled sampler
	failures := 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-w.wake[i]:
		}
		start := w.now()
		err := w.read(ctx, i, &relay)
		wait := max(readInterval, readShare*w.now().Sub(start))
		if err != nil && ctx.Err() == nil {
			failures++
			wait = retry.After(failures, readInterval, maxWait)
		} else if err == nil {
			failures = 0
			w.sample(ctx, i, &sampled)
		}
		timer.Reset(wait)
	}
}

// read reads one outbox and publishes what it found.
func (w *Watcher) read(ctx context.Context, i int, relay *relayWatch) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	s, err := w.sources[i].Stats(ctx)
	if err == nil {
		err = w.trace(ctx, i, s.Now)
	}
	o := w.Snapshot()[i]
	now := w.now()
	if err != nil {
		if o.Err == nil {
			o.FailedAt = now
			w.log.Warn("outbox not read", "outbox", o.Name, "error", err)
		}
		o.Err = asError(err)
	} else {
		o.Stats, o.Relay, o.ReadAt, o.Err, o.FailedAt = s, relay.observe(s), now, nil, time.Time{}
	}
	w.publish(i, o)
	return err
}

func asError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Fault: FaultOther, Text: "The outbox cannot be read.", Err: err}
}

func (w *Watcher) publish(i int, o Outbox) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = append([]Outbox(nil), w.state...)
	w.state[i] = o
	close(w.changed)
	w.changed = make(chan struct{})
}
