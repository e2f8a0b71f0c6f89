// Package queues polls the queues of a broker: how long they are, how fast they fill and drain, and who consumes
// from them. It does not change them.
package queues

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	defaultEvery = 5 * time.Second
	idleEvery    = 30 * time.Second // while unused
	watchedFor   = 30 * time.Second // how long after a call of Snapshot polling stays frequent
	timeout      = 10 * time.Second // of one poll
	firstRetry   = 500 * time.Millisecond
)

// Options of a Watcher. Stats is required.
type Options struct {
	// Stats returns statistics of queues, like remote.Client.QueueStats.
	Stats func(ctx context.Context, queues []string) (broker.QueueStats, error)
	// Consumers returns the queues that workers and events name, with the workers that consume from them, nil if
	// unknown.
	Consumers func() map[string][]string
	// ConsumersComplete reports whether all workers have reported their queues, so that a queue without workers in
	// Consumers has none. Nil means false.
	ConsumersComplete func() bool
	// Counters returns totals from events, by queue. They are used if the broker has none. Nil means unknown.
	Counters func() map[string]Counters
	// HoldsETA reports whether workers hold tasks with an ETA after a moment. Nil means unknown.
	HoldsETA func(ctx context.Context, after time.Time) bool
	// Hidden names further queues that are not task queues: Umbel's own.
	Hidden []string
	Every  time.Duration // 5 s if zero
	Now    func() time.Time
}

// Watcher polls queues. It is safe for concurrent use. Run is its only writer.
type Watcher struct {
	options Options
	tracks  map[string]*track // used by Run alone
	wake    chan struct{}     // holds one token when Run should poll soon

	mu          sync.Mutex // guards what is below
	requestedAt time.Time  // of the last Snapshot
	snapshot    Snapshot
	changed     chan struct{}
}

// New validates o and starts nothing.
func New(o Options) (*Watcher, error) {
	if o.Stats == nil {
		return nil, errors.New("a watcher of queues needs Stats")
	}
	o.Every = cmp.Or(o.Every, defaultEvery)
	if o.Every < 0 {
		return nil, errors.New("the interval of polls is negative")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Watcher{
		options: o, tracks: make(map[string]*track), wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}, nil
}

// Run polls the queues, more often while Snapshot is called, until ctx ends. It returns nil.
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
		last = w.options.Now()
		err := w.poll(ctx)
		next.Reset(w.pause(err))
	}
}

// pause is the wait for the next poll. One that failed is repeated soon, and sooner before the first success,
// since there may be no connection yet.
func (w *Watcher) pause(err error) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.snapshot.At.IsZero() {
		return min(w.options.Every, firstRetry)
	}
	if err != nil || w.watched(w.options.Now()) {
		return w.options.Every
	}
	return max(w.options.Every, idleEvery)
}

// watched reports whether Snapshot was called recently. The caller holds mu.
func (w *Watcher) watched(now time.Time) bool {
	return !w.requestedAt.IsZero() && now.Sub(w.requestedAt) < watchedFor
}

// Snapshot returns the last poll and has Run poll more often for a while.
func (w *Watcher) Snapshot() Snapshot {
	now := w.options.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.watched(now) {
		select {
		case w.wake <- struct{}{}:
		default: // Run will wake anyway
		}
	}
	w.requestedAt = now
	return w.snapshot
}

// Peek returns the last poll, at most half a minute old, and triggers none.
func (w *Watcher) Peek() Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.snapshot
}

// Changed returns a channel that is closed at the next change.
func (w *Watcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Snapshot is all queues at one moment.
type Snapshot struct {
	At     time.Time // zero if none was taken yet
	Source string
	Error  string  // why the last poll failed, empty if it did not
	Queues []Queue // by name; not to be changed
	Broker broker.Info
	// Warnings are sentences about all queues, in addition to those in Broker.
	Warnings []string
}

// Backlog counts the messages that wait for a worker, nil if that is not known.
func (s Snapshot) Backlog() *int64 {
	if s.At.IsZero() || s.Error != "" {
		return nil
	}
	waiting := int64(0)
	for i := range s.Queues {
		if q := &s.Queues[i]; !q.Hidden && !q.Missing && q.Ready != nil {
			waiting += *q.Ready
		}
	}
	return &waiting
}

// Queue is what is known of one queue. Nil is unknown.
type Queue struct {
	broker.Queue
	Workers         []string // that consume from it, as they report
	WorkersKnown    bool     // whether Workers is known
	InRate, OutRate *float64 // messages per second over the last minute
	// RatesFrom is the source of InRate and OutRate: broker or events; empty if both are unknown.
	RatesFrom string
	// Age estimates how long the next message has waited; AgeAtLeast and AgeAtMost are its bounds, if messages leave
	// in the order in which they came. All are nil if the queue is empty, Age and AgeAtLeast also if priorities change
	// the order, and Age if the message came before the first poll.
	Age, AgeAtLeast, AgeAtMost *time.Duration
	// DrainTime is how long the queue takes to empty at the present rates, nil if it does not.
	DrainTime *time.Duration
	// RedeliveredAt is when the visibility timeout redelivers the oldest unacknowledged message.
	RedeliveredAt *time.Time
	// Hidden reports that it is not a task queue but a mailbox, a reply queue or an event queue.
	Hidden bool
	Depths []Point // of the last hour, oldest first
	// Warnings are sentences, such as that it has no consumer.
	Warnings []string
}

// Point is the depth of a queue at a moment.
type Point struct {
	At    time.Time
	Ready int64
}

// poll reads the queues and publishes a new snapshot.
func (w *Watcher) poll(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	known := w.gather()
	stats, err := w.options.Stats(limited, slices.Sorted(maps.Keys(known.names)))
	if ctx.Err() != nil {
		return nil
	}
	if w.options.Counters != nil { // as it is now, which is when the depths were read
		known.counters = w.options.Counters()
	}
	var s Snapshot
	if err != nil {
		w.mu.Lock()
		s = w.snapshot
		w.mu.Unlock()
		s.Error = err.Error()
	} else {
		s = w.snapshotOf(stats, known)
		s.Warnings = w.warnings(limited, s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.snapshot = s
	close(w.changed)
	w.changed = make(chan struct{})
	return err
}

// reports is what workers and events report about queues.
type reports struct {
	names     map[string]bool // queues to poll; true if a worker or an event names it now
	consumers map[string][]string
	complete  bool
	counters  map[string]Counters
}

// gather collects what workers and events report now.
func (w *Watcher) gather() reports {
	r := reports{names: make(map[string]bool)}
	now := w.options.Now()
	for name, t := range w.tracks {
		if now.Sub(t.seen) <= forgetAfter {
			r.names[name] = false
		}
	}
	if w.options.Consumers != nil {
		r.consumers = w.options.Consumers()
	}
	if w.options.ConsumersComplete != nil {
		r.complete = w.options.ConsumersComplete()
	}
	for name := range r.consumers {
		r.names[name] = true
	}
	if w.options.Counters != nil {
		for name := range w.options.Counters() {
			r.names[name] = true
		}
	}
	delete(r.names, "")
	return r
}

// snapshotOf adds a poll to the history of each queue.
func (w *Watcher) snapshotOf(stats broker.QueueStats, known reports) Snapshot {
	at := stats.At
	if at.IsZero() {
		at = w.options.Now()
	}
	s := Snapshot{At: at, Source: stats.Source, Broker: stats.Broker}
	seen := make(map[string]bool, len(stats.Queues))
	for _, q := range stats.Queues {
		t := w.tracks[q.Name]
		if t == nil {
			t = &track{seen: at}
		}
		if known.names[q.Name] || positive(q.Ready) || positive(q.Unacked) || positive(q.Consumers) {
			t.seen = at
		}
		if q.Missing && !known.names[q.Name] {
			continue
		}
		seen[q.Name] = true
		w.tracks[q.Name] = t
		s.Queues = append(s.Queues, w.describe(q, t, known, at, stats.Broker))
	}
	maps.DeleteFunc(w.tracks, func(name string, _ *track) bool { return !seen[name] })
	slices.SortFunc(s.Queues, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// describe computes all that is known of one queue.
func (w *Watcher) describe(q broker.Queue, t *track, known reports, at time.Time, broker broker.Info) Queue {
	counters, counted := known.counters[q.Name]
	t.add(q, counters, counted, at)
	d := Queue{Queue: q, Hidden: Hidden(q.Name) || slices.Contains(w.options.Hidden, q.Name), Depths: t.depths()}
	d.Workers = slices.Sorted(slices.Values(known.consumers[q.Name]))
	d.WorkersKnown = known.consumers[q.Name] != nil || known.complete
	d.InRate, d.OutRate, d.RatesFrom = t.rates()
	t.age(&d)
	if d.InRate != nil && d.OutRate != nil && positive(q.Ready) {
		d.DrainTime = drain(*q.Ready, *d.OutRate-*d.InRate)
	}
	if q.OldestUnacked != nil && broker.VisibilityTimeout != nil {
		restore := q.OldestUnacked.Add(*broker.VisibilityTimeout)
		d.RedeliveredAt = &restore
	}
	if !d.Hidden {
		d.Warnings = d.warnings(at, broker)
	}
	return d
}

func positive(n *int64) bool { return n != nil && *n > 0 }

// drain is how long n messages take at a rate per second, nil if they are not fewer within a month.
func drain(n int64, rate float64) *time.Duration {
	seconds := float64(n) / rate
	if rate <= 0 || seconds > (30*24*time.Hour).Seconds() {
		return nil
	}
	d := time.Duration(seconds * float64(time.Second))
	return &d
}
