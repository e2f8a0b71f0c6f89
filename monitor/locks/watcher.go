package locks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/state"
)

const (
	defaultEvery         = 3 * time.Second
	defaultLockTTL       = 10 * time.Minute
	defaultCompletionTTL = 24 * time.Hour
	watchedFor           = 30 * time.Second // how long after a call of Snapshot keys are read
	firstWait            = 2 * time.Second  // of a Snapshot for the first read
	passTimeout          = 15 * time.Second
	scanTime             = 500 * time.Millisecond // of one pass
	scanSteps            = 100                    // of one pass
)

// Tasks looks up tasks and workers: a view.Reader.
type Tasks interface {
	View(f func(c state.View))
	Task(ctx context.Context, id string) (state.Task, error)
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
}

// Options of a Watcher. Source and Tasks are required.
type Options struct {
	Source  Source
	Tasks   Tasks
	Rollups history.RollupReader // of run times; nil if there are none
	// LockTTL and CompletionTTL are those of the idempotency scheme, 10 min and 24 h if zero, unknown if negative. A lock's age
	// follows from them where its task does not tell.
	LockTTL, CompletionTTL time.Duration
	Every                  time.Duration // 3 s if zero
	Redactor               *redact.Redactor
	Now                    func() time.Time
}

// Watcher reads locks while somebody watches. It is safe for concurrent use.
type Watcher struct {
	options Options
	wake    chan struct{} // holds one token when Run should read soon
	turn    chan struct{} // holds one token while nobody uses tracker
	tracker *tracker

	mu          sync.Mutex // guards what is below
	requestedAt time.Time  // of the last Snapshot
	snapshot    Snapshot
	failedAt    time.Time // when a read last failed
	changed     chan struct{}
}

// New validates o and starts nothing.
func New(o Options) (*Watcher, error) {
	if o.Source == nil || o.Tasks == nil {
		return nil, errors.New("a watcher of locks needs a source and tasks")
	}
	o.Every, o.LockTTL = cmp.Or(o.Every, defaultEvery), cmp.Or(o.LockTTL, defaultLockTTL)
	o.CompletionTTL = cmp.Or(o.CompletionTTL, defaultCompletionTTL)
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Watcher{options: o, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1), tracker: newTracker(o), changed: make(chan struct{})}
	w.turn <- struct{}{}
	w.snapshot.Source = o.Source.String()
	return w, nil
}

// Run reads the locks while Snapshot is called, until ctx ends. It returns nil.
func (w *Watcher) Run(ctx context.Context) error {
	next := time.NewTimer(0)
	defer next.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
			next.Reset(max(0, w.options.Every-w.options.Now().Sub(last)))
			continue
		case <-next.C:
		}
		if !w.watched() {
			continue // until somebody wakes it
		}
		last = w.options.Now()
		w.pass(ctx)
		next.Reset(w.options.Every)
	}
}

func (w *Watcher) watched() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.requestedAt.IsZero() && w.options.Now().Sub(w.requestedAt) < watchedFor
}

// Snapshot returns the locks as last read, and has Run read them for a while. If they were not read lately, it waits a little
// for that.
func (w *Watcher) Snapshot(ctx context.Context) Snapshot {
	ctx, cancel := context.WithTimeout(ctx, firstWait)
	defer cancel()
	for {
		w.mu.Lock()
		now := w.options.Now()
		w.requestedAt = now
		s, changed := w.snapshot, w.changed
		known := now.Sub(s.At) < watchedFor || s.Error != "" && now.Sub(w.failedAt) < watchedFor
		w.mu.Unlock()
		if known {
			return s
		}
		w.Refresh()
		select {
		case <-changed:
			if s = w.peek(); s.Error != "" {
				return s
			}
		case <-ctx.Done():
			return s
		}
	}
}

func (w *Watcher) peek() Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.snapshot
}

// Refresh has Run read the locks soon, if somebody watches.
func (w *Watcher) Refresh() {
	select {
	case w.wake <- struct{}{}:
	default: // Run will wake anyway
	}
}

// Changed returns a channel that is closed after the next read.
func (w *Watcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Find reads one lock now, by its key as in Redis or as in Lock. It is false if there is none.
func (w *Watcher) Find(ctx context.Context, key string) (Lock, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	if err := w.take(ctx); err != nil {
		return Lock{}, false, err
	}
	defer w.give()
	return w.tracker.find(ctx, key)
}

// Release deletes a lock if it is as it was seen: its value, when it expires, and which task holds it.
func (w *Watcher) Release(ctx context.Context, seen Seen) (Outcome, error) {
	l, ok, err := w.Find(ctx, seen.Key)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return Gone, nil
	case l.stored.Value != seen.Value:
		return Changed, nil
	case l.holderID() != seen.Holder:
		return OtherHolder, nil
	}
	want := Expected{Key: seen.Key, Value: seen.Value, MaxTTL: -1}
	if !seen.ExpiresAt.IsZero() {
		want.MaxTTL = max(seen.ExpiresAt.Sub(w.options.Now()), 0) + sameExpiry
	}
	outcome, err := w.options.Source.Release(ctx, want)
	w.Refresh()
	return outcome, err
}

// Seen is what somebody saw of a lock before releasing it.
type Seen struct {
	Key, Value string
	ExpiresAt  time.Time // zero if it does not expire
	Holder     string    // id of the task, empty if unknown
}

// Seen returns what a release of l needs.
func (l *Lock) Seen() Seen {
	return Seen{Key: l.stored.Key, Value: l.stored.Value, ExpiresAt: l.ExpiresAt, Holder: l.holderID()}
}

func (l *Lock) holderID() string {
	if l.Holder == nil {
		return ""
	}
	return l.Holder.TaskID
}

// take waits for the tracker.
func (w *Watcher) take(ctx context.Context) error {
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *Watcher) give() { w.turn <- struct{}{} }

// pass reads the locks and publishes a new snapshot.
func (w *Watcher) pass(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	if w.take(limited) != nil {
		return
	}
	s, err := w.tracker.read(limited)
	w.give()
	if ctx.Err() != nil {
		return
	}
	s.At, s.Source = w.options.Now(), w.options.Source.String()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		s = w.snapshot
		s.Error, w.failedAt = err.Error(), w.options.Now()
	}
	w.snapshot = s
	close(w.changed)
	w.changed = make(chan struct{})
}

// sortLocks puts the worst first.
func sortLocks(list []Lock) {
	rank := func(l *Lock) int {
		if len(l.Marks) > 0 {
			return slices.Index(MarkKinds(), l.Marks[0].Kind)
		}
		return len(MarkKinds()) + slices.Index([]State{Processing, Held, UnknownState, Completed}, l.State)
	}
	slices.SortFunc(list, func(a, b Lock) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), b.AcquiredAt.Compare(a.AcquiredAt), strings.Compare(a.Key, b.Key), a.Gone.Compare(b.Gone))
	})
}
