// Package queues watches the queues of a broker: how long they are, how fast they fill and drain, who consumes from
// them and who does not. It changes none of them.
package queues

import (
	"context"
	"time"

	"github.com/umbelhq/umbel/monitor/transport"
)

// Options of a Watcher. Survey is required.
type Options struct {
	// Survey looks at queues, as control.Client does.
	Survey func(ctx context.Context, queues []string) (transport.Survey, error)
	// Known returns the names of queues that workers and events tell of, and their consumers, nil where that is not
	// known.
	Known func() map[string][]string
	// Flow returns how many messages events tell of, by queue. It is used where the broker counts none itself. Nil
	// means that nobody knows.
	Flow func() map[string]Flow
	// Latest returns the latest moment for which a worker holds a task back, zero if none is known. Nil means that
	// nobody knows.
	Latest func() time.Time
	// Hide names queues that are none of tasks, beside those that are known by their names: Umbel's own.
	Hide  []string
	Every time.Duration // 5 s if zero
	Now   func() time.Time
}

// Flow is what events tell of a queue, counted since some moment that stays.
type Flow struct {
	Sent     int64 // 0 where clients send no task-sent
	Received int64
}

// Watcher watches. It is safe for concurrent use.
type Watcher struct{}

// New validates o and starts nothing.
func New(o Options) (*Watcher, error) { return &Watcher{}, nil }

// Run looks at the queues while somebody wants to know, and now and then otherwise, until ctx ends. It returns nil.
func (w *Watcher) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Snapshot returns what was last seen, and has it looked at again soon.
func (w *Watcher) Snapshot() Snapshot { return Snapshot{} }

// Changed returns a channel that is closed when there is something new.
func (w *Watcher) Changed() <-chan struct{} { return nil }

// Snapshot is all queues at one moment.
type Snapshot struct {
	At     time.Time // zero if none was taken yet
	Source string
	Error  string  // why the last look failed, empty if it did not
	Queues []Queue // by name; not to be changed
	Broker transport.Info
	// Warnings are sentences about all queues, beside those in Broker.
	Warnings []string
}

// Queue is what is known of one queue. Nil is unknown.
type Queue struct {
	transport.Queue
	Workers []string // that consume from it, as they say
	Asked   bool     // whether Workers is known
	In, Out *float64 // messages per second over the last minute
	// RatesFrom says what In and Out were read from: broker or events; empty if both are unknown.
	RatesFrom string
	// Age is how long the message has waited that is next, by estimate; AgeAtLeast and AgeAtMost are what is certain
	// of it, if messages leave in the order in which they came. All are nil where nothing waits.
	Age, AgeAtLeast, AgeAtMost *time.Duration
	// Drain is how long it takes to empty at the present rates; nil if it does not.
	Drain *time.Duration
	// Restore is when the visibility timeout gives the oldest unacknowledged delivery to another worker.
	Restore *time.Time
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
