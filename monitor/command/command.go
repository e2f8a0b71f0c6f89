// Package command is what people have done to a cluster: it checks what they ask for, tells them what it would do,
// writes it as commands into the outbox, and sends those when the relay says so. It sends nothing that is not in the
// outbox.
package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Tasks is where tasks and workers are looked up: a monitor.
type Tasks interface {
	View(f func(c *state.Cluster))
	Task(ctx context.Context, id string) (state.Task, error)
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
	Count(ctx context.Context, q query.Query) (history.Count, error)
}

// Workers forgets a worker that is offline and has no unfinished task, as a monitor does, and reports whether it has.
type Forgetter interface {
	ForgetWorker(name string) bool
}

// Options of a Service. Client, Outbox and Tasks are required.
type Options struct {
	Client    *remote.Client // Run runs it
	Outbox    history.Outbox
	Tasks     Tasks
	Forgetter Forgetter       // nil if workers cannot be forgotten
	Dismisser Dismisser       // nil if tasks cannot be dismissed
	Results   results.Backend // nil if there is none; whoever opened it closes it
	// QueueCounters returns how many messages events report, by queue, and by worker those of unknown queues; nil if
	// nobody counts.
	QueueCounters func() (byQueue map[string]queues.Counters, unrouted map[string]int64)
	HiddenQueues  []string // Umbel's own
	ReadOnly      bool     // nothing is sent, not even what waits in the outbox
	Now           func() time.Time
	Logger        *slog.Logger // nil discards
}

// Service takes requests, and holds what they go by. It is safe for concurrent use.
type Service struct {
	Client    *remote.Client
	Inspector *remote.Inspector
	Queues    *queues.Watcher
	Relay     *relay.Relay    // nil if read-only
	Results   results.Backend // nil if there is none

	outbox    history.Outbox
	tasks     Tasks
	forgetter Forgetter // nil if workers cannot be forgotten
	dismisser Dismisser // nil if tasks cannot be dismissed
	now       func() time.Time
	log       *slog.Logger
	origin    string       // of the messages that it publishes
	clock     atomic.Int64 // Lamport clock of the events of them
}

// New validates o and starts nothing.
func New(o Options) (*Service, error) {
	if o.Client == nil || o.Outbox == nil || o.Tasks == nil {
		return nil, errors.New("command service needs a client, an outbox and tasks")
	}
	s := &Service{
		Client: o.Client, Results: o.Results, outbox: o.Outbox, tasks: o.Tasks, forgetter: o.Forgetter, dismisser: o.Dismisser,
		now: o.Now, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
	}
	if s.now == nil {
		s.now = time.Now
	}
	host, err := os.Hostname()
	if err != nil {
		host = "umbel"
	}
	s.origin = fmt.Sprintf("gen%d@%s", os.Getpid(), host)
	s.Inspector, err = remote.NewInspector(remote.InspectorOptions{Client: s.Client, Alive: s.alive, Now: o.Now})
	if err != nil {
		return nil, err
	}
	if s.Queues, err = s.newQueues(o); err != nil || o.ReadOnly {
		return s, err
	}
	s.Relay, err = relay.New(relay.Options{Store: o.Outbox, Sender: s, Now: o.Now, Logger: o.Logger})
	return s, err
}

// Run keeps the control connection, inspects workers and queues, and sends what is in the outbox until ctx ends. The relay
// gets to record what it was sending. It returns nil.
func (s *Service) Run(ctx context.Context) error {
	connected, disconnect := context.WithCancel(context.WithoutCancel(ctx)) // what the relay is sending needs it
	defer disconnect()
	var g errgroup.Group
	g.Go(func() error { return s.Client.Run(connected) })
	g.Go(func() error { return s.Inspector.Run(ctx) })
	g.Go(func() error { return s.Queues.Run(ctx) })
	g.Go(func() error {
		defer disconnect()
		if s.Relay == nil {
			<-ctx.Done()
			return nil
		}
		return s.Relay.Run(ctx)
	})
	return g.Wait()
}

// Caller is who makes a request.
type Caller struct {
	Actor          string // who, as the host program knows them
	RemoteAddr     string // address that the request came from
	IdempotencyKey string // idempotency key, empty if there is none
	Endpoint       string // page or endpoint
}

// Error says why an order is not taken.
type Error struct {
	Kind    Kind
	Field   string // what is wrong: arguments.n, args[2].price, queue; empty if it is the whole
	Message string // one sentence
	Nearest string // the known name that was probably meant, empty if none is near
}

// Kind of an Error.
type Kind uint8

// Kinds of errors, with the HTTP status that fits.
const (
	Invalid  Kind = iota // 400
	NotFound             // 404: no such worker or task
	Conflict             // 409: it makes no sense now, such as to revoke a finished task; 422 if the key was reused
)

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Receipt is an order that is in the outbox.
type Receipt struct {
	Commands []history.Command
	Replayed bool     // the idempotency key was used before: these are the commands of then
	Warnings []string // what the preview said
}

// Preview is what an order would do.
type Preview struct {
	Summary  string    // what would be sent
	Targets  []string  // to whom
	Warnings []Warning // what it would lead to
	// Confirm is the text that must be typed to go on, empty if a click is enough.
	Confirm string
}

// Warning is one consequence, as a sentence: This leaves queue mail with no consumer.
type Warning struct {
	Message string
	Severe  bool
}

// ControlOrder asks workers for something.
type ControlRequest struct {
	Method    string
	Arguments map[string]any
	Workers   []string      // empty is every worker
	Expires   time.Duration // 60 s if zero
}

// TaskOrder asks for a task to be published.
type TaskRequest struct {
	ID        string // a new one if empty
	Name      string
	Args      json.RawMessage // an array, [] if empty
	Kwargs    json.RawMessage // an object, {} if empty
	Queue     string          // celery if empty
	Countdown time.Duration   // not before now + this
	ETA       time.Time       // not before
	Expires   time.Time       // zero is never
	Priority  *uint8          // 0 to 9
	Hard      *float64        // time limits, seconds
	Soft      *float64
	// RetryOf is the task that it repeats, empty if it repeats none.
	RetryOf string
	// Force publishes although no worker that answered has the task or consumes from the queue.
	Force bool
	// Original is what is known of the task that it repeats, as Retry returns it; it is looked up if nil.
	Original *Original `json:"-"`
}

// BulkOrder asks for many tasks at once to be revoked, terminated or retried.
type BulkRequest struct {
	Action string      // revoke, terminate, retry
	IDs    []string    // of tasks, or
	Query  query.Query // all that match
	Signal string      // of terminate, SIGTERM if empty
	Cap    int         // most tasks, DefaultCap if zero, MaxCap at most
}

// DefaultCap and MaxCap bound a BulkOrder.
const (
	DefaultCap = 1_000
	MaxCap     = 10_000
)

// Preflight is what a bulk order would do.
type BulkPreview struct {
	Preview
	Matched  history.Count       // tasks that the query matches
	Selected int                 // tasks that it would act on
	States   map[state.State]int // of those
	Blocked  []Blocked           // why others are left out
	Capped   bool                // more match than the cap allows
}

// Blocked is a reason to leave tasks out.
type Blocked struct {
	Reason string // already finished; arguments cut short
	N      int
	IDs    []string // the first few
}
