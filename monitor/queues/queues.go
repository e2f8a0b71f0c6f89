// Package queues watches the queues of a broker: how long they are, how fast they fill and drain, who consumes from
// them and who does not. It changes none of them.
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
	idleEvery    = 30 * time.Second // while nobody looks
	watchedFor   = 30 * time.Second // for how long somebody who looked is taken to look
	timeout      = 10 * time.Second // with one look
	firstRetry   = 500 * time.Millisecond
)

// Options of a Watcher. QueueStats is required.
type Options struct {
	// QueueStats looks at queues, as remote.Client does.
	Stats func(ctx context.Context, queues []string) (broker.QueueStats, error)
	// Known returns the names of queues that workers and events tell of, and their consumers, nil where that is not
	// known.
	Consumers func() map[string][]string
	// Complete says whether all workers have told from which queues they consume, so that a queue without consumers
	// in Known has none. Nil means that they have not.
	ConsumersComplete func() bool
	// Flow returns how many messages events tell of, by queue. It is used where the broker counts none itself. Nil
	// means that nobody knows.
	Counters func() map[string]Counters
	// Held says whether workers hold tasks back until after a moment. Nil means that nobody knows.
	HoldsETA func(ctx context.Context, after time.Time) bool
	// Hide names queues that are none of tasks, beside those that are known by their names: Umbel's own.
	Hidden []string
	Every  time.Duration // 5 s if zero
	Now    func() time.Time
}

// Watcher watches. It is safe for concurrent use. Run is its only writer.
type Watcher struct {
	options Options
	tracks  map[string]*track // used by Run alone
	wake    chan struct{}     // holds one token when somebody has begun to look

	mu          sync.Mutex // guards what is below
	requestedAt time.Time  // when somebody did last
	snapshot    Snapshot
	changed     chan struct{}
}

// New validates o and starts nothing.
func New(o Options) (*Watcher, error) {
	if o.Stats == nil {
		return nil, errors.New("a watcher of queues needs a survey")
	}
	o.Every = cmp.Or(o.Every, defaultEvery)
	if o.Every < 0 {
		return nil, errors.New("queues are looked at every so often, not before")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Watcher{
		options: o, tracks: make(map[string]*track), wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}, nil
}

// Run looks at the queues while somebody wants to know, and now and then otherwise, until ctx ends. It returns nil.
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

// pause is how long to wait for the next look: one that failed is repeated soon, and sooner before the first that did
// not, since there may be no connection yet.
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

// watched says whether somebody looks. The caller holds mu.
func (w *Watcher) watched(now time.Time) bool {
	return !w.requestedAt.IsZero() && now.Sub(w.requestedAt) < watchedFor
}

// Snapshot returns what was last seen, and has it looked at again soon.
func (w *Watcher) Snapshot() Snapshot {
	now := w.options.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.watched(now) {
		select {
		case w.wake <- struct{}{}:
		default: // it is wanted already
		}
	}
	w.requestedAt = now
	return w.snapshot
}

// Last returns what was last seen, at most half a minute ago, and has nothing looked at.
func (w *Watcher) Peek() Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.snapshot
}

// Changed returns a channel that is closed when there is something new.
func (w *Watcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Snapshot is all queues at one moment.
type Snapshot struct {
	At     time.Time // zero if none was taken yet
	Source string
	Error  string  // why the last look failed, empty if it did not
	Queues []Queue // by name; not to be changed
	Broker broker.Info
	// Warnings are sentences about all queues, beside those in Broker.
	Warnings []string
}

// Queue is what is known of one queue. Nil is unknown.
type Queue struct {
	broker.Queue
	Workers         []string // that consume from it, as they say
	WorkersKnown    bool     // whether Workers is known
	InRate, OutRate *float64 // messages per second over the last minute
	// RatesFrom says what In and Out were read from: broker or events; empty if both are unknown.
	RatesFrom string
	// Age is how long the message has waited that is next, by estimate; AgeAtLeast and AgeAtMost are what is certain
	// of it, if messages leave in the order in which they came. All are nil where nothing waits, and each where it
	// cannot be told: Age and AgeAtLeast where priorities change the order, Age where the message came before
	// anybody looked.
	Age, AgeAtLeast, AgeAtMost *time.Duration
	// Drain is how long it takes to empty at the present rates; nil if it does not.
	DrainTime *time.Duration
	// Restore is when the visibility timeout gives the oldest unacknowledged delivery to another worker.
	RedeliveredAt *time.Time
	// Hidden says that it is none of tasks: a mailbox, a reply queue, an event queue.
	Hidden bool
	Depths []Point // of the last hour, oldest first
	// Warnings are sentences: nobody consumes from it.
	Warnings []string
}

// Point is the depth of a queue at a moment.
type Point struct {
	At    time.Time
	Ready int64
}

// look queue stats the queues and publishes what came of it.
func (w *Watcher) poll(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	known := w.gather()
	survey, err := w.options.Stats(limited, slices.Sorted(maps.Keys(known.names)))
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
		s = w.snapshotOf(survey, known)
		s.Warnings = w.warnings(limited, s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.snapshot = s
	close(w.changed)
	w.changed = make(chan struct{})
	return err
}

// hearsay is what workers and events tell of queues.
type reports struct {
	names     map[string]bool // to ask for; true if somebody tells of it now
	consumers map[string][]string
	complete  bool
	counters  map[string]Counters
}

func (w *Watcher) gather() reports {
	h := reports{names: make(map[string]bool)}
	now := w.options.Now()
	for name, t := range w.tracks {
		if now.Sub(t.seen) <= forgetAfter {
			h.names[name] = false
		}
	}
	if w.options.Consumers != nil {
		h.consumers = w.options.Consumers()
	}
	if w.options.ConsumersComplete != nil {
		h.complete = w.options.ConsumersComplete()
	}
	for name := range h.consumers {
		h.names[name] = true
	}
	if w.options.Counters != nil {
		for name := range w.options.Counters() {
			h.names[name] = true
		}
	}
	delete(h.names, "")
	return h
}

// digest adds a QueueStats call to what was seen before.
func (w *Watcher) snapshotOf(survey broker.QueueStats, known reports) Snapshot {
	at := survey.At
	if at.IsZero() {
		at = w.options.Now()
	}
	s := Snapshot{At: at, Source: survey.Source, Broker: survey.Broker}
	seen := make(map[string]bool, len(survey.Queues))
	for _, q := range survey.Queues {
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
		s.Queues = append(s.Queues, w.describe(q, t, known, at, survey.Broker))
	}
	maps.DeleteFunc(w.tracks, func(name string, _ *track) bool { return !seen[name] })
	slices.SortFunc(s.Queues, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// describe is all that is known of one queue.
func (w *Watcher) describe(q broker.Queue, t *track, known reports, at time.Time, broker broker.Info) Queue {
	flow, flows := known.counters[q.Name]
	t.add(q, flow, flows, at)
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
