// Package command acts on a cluster for people: it checks and previews their requests, enqueues them as commands in the
// outbox with an audit record, and sends those for the relay. It sends nothing that is not in the outbox.
package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/umbelhq/umbel/monitor/alert/receivers"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/monitor/outboxwatch"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Tasks looks up tasks and workers: a view.Reader.
type Tasks interface {
	View(f func(c state.View))
	Task(ctx context.Context, id string) (state.Task, error)
	Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error)
	Count(ctx context.Context, q query.Query) (history.Count, error)
}

// Forgetter removes an offline worker without unfinished tasks and reports whether it did: an ingest.Ingester.
type Forgetter interface {
	ForgetWorker(name string) bool
}

// Reporter records what workers have reported when inspected: an ingest.Ingester.
type Reporter interface {
	ReportWorkers(reports map[string]state.LastReport)
}

// Options of a Service. Client, Outbox and Tasks are required.
type Options struct {
	Client    *remote.Client // run by Service.Run
	Outbox    history.Outbox
	Tasks     Tasks
	Forgetter Forgetter       // nil if workers cannot be forgotten
	Reporter  Reporter        // nil drops what workers report
	Dismisser Dismisser       // nil if tasks cannot be dismissed
	Rules     DuplicateRules  // nil if none can be saved
	Results   results.Backend // nil if there is none; whoever opened it closes it
	Locks     *locks.Watcher  // run by Service.Run; nil if there is no Redis with locks
	// QueueCounters returns how many messages events report, by queue, and by worker those of unknown queues; nil if
	// nobody counts.
	QueueCounters func() (byQueue map[string]queues.Counters, unrouted map[string]int64)
	// EventSerializer returns the serializer of the events that were seen last, for those that are published; nil is JSON.
	EventSerializer func() celery.Serializer
	HiddenQueues    []string             // Umbel's own
	Outboxes        *outboxwatch.Watcher // of applications, nil if there are none; run by whoever made it
	Receivers       []receivers.Receiver // of notifications
	ReadOnly        bool                 // nothing is sent, not even what is in the outbox
	Now             func() time.Time
	Logger          *slog.Logger // nil discards
}

// Service takes requests, sends their commands, and reads the commands that there are. It is safe for concurrent use.
type Service struct {
	history.CommandReader // of the outbox

	Client    *remote.Client
	Inspector *remote.Inspector
	Queues    *queues.Watcher
	Relay     *relay.Relay    // nil if read-only
	Results   results.Backend // redacted; nil if there is none
	Locks     *locks.Watcher  // nil if there is no Redis with locks

	outbox    history.Outbox
	tasks     Tasks
	forgetter Forgetter            // nil if workers cannot be forgotten
	dismisser Dismisser            // nil if tasks cannot be dismissed
	outboxes  *outboxwatch.Watcher // of applications, nil if there are none
	rules     DuplicateRules       // nil if none can be saved
	redactor  *redact.Redactor     // the client's
	results   results.Backend      // as Results, but not redacted: a retry needs arguments as they are
	// eventSerializer returns that of published events.
	eventSerializer func() celery.Serializer
	now             func() time.Time
	log             *slog.Logger
	receivers       []receivers.Receiver
	origin          string       // origin header of the messages that it publishes
	clock           atomic.Int64 // Lamport clock of their task-sent events
	draining        sync.Map     // by worker, a *sync.Mutex held while it is drained or that undone: the later of the two wins
}

// New validates o and starts nothing.
func New(o Options) (*Service, error) {
	if o.Client == nil || o.Outbox == nil || o.Tasks == nil {
		return nil, errors.New("command service needs a client, an outbox and tasks")
	}
	s := &Service{
		CommandReader: o.Outbox, Client: o.Client, results: o.Results, redactor: o.Client.Redactor(), Locks: o.Locks, outbox: o.Outbox, tasks: o.Tasks, forgetter: o.Forgetter, dismisser: o.Dismisser, outboxes: o.Outboxes, rules: o.Rules,
		eventSerializer: o.EventSerializer, receivers: o.Receivers,
		now: o.Now, log: cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
	}
	if o.Results != nil {
		s.Results = results.Redact(o.Results, s.redactor)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.eventSerializer == nil {
		s.eventSerializer = func() celery.Serializer { return celery.JSON }
	}
	host, err := os.Hostname()
	if err != nil {
		host = "umbel"
	}
	s.origin = fmt.Sprintf("gen%d@%s", os.Getpid(), host)
	inspector := remote.InspectorOptions{Client: s.Client, Alive: s.alive, Now: o.Now}
	if o.Reporter != nil {
		inspector.Record = o.Reporter.ReportWorkers
	}
	s.Inspector, err = remote.NewInspector(inspector)
	if err != nil {
		return nil, err
	}
	if s.Queues, err = s.newQueues(o); err != nil || o.ReadOnly {
		return s, err
	}
	s.Relay, err = relay.New(relay.Options{Store: o.Outbox, Sender: s, Now: o.Now, Logger: o.Logger})
	return s, err
}

// Run keeps the control connection open, inspects workers and queues, and relays the outbox until ctx ends and the relay has
// recorded what it was sending. It returns nil.
func (s *Service) Run(ctx context.Context) error {
	connected, disconnect := context.WithCancel(context.WithoutCancel(ctx)) // the relay may still be sending
	defer disconnect()
	var g errgroup.Group
	g.Go(func() error { return s.Client.Run(connected) })
	g.Go(func() error { return s.Inspector.Run(ctx) })
	g.Go(func() error { return s.Queues.Run(ctx) })
	if s.Locks != nil {
		g.Go(func() error { return s.Locks.Run(ctx) })
	}
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
	Actor          string // who, by Options.Identify of the host program
	Method, Role   string // how the user was identified, and the user's role; empty if unknown
	RemoteAddr     string // IP address of the request
	IdempotencyKey string // empty if there is none
	Endpoint       string // page or endpoint
}

// Error is why a request is refused.
type Error struct {
	Kind    Kind
	Field   string // wrong field: arguments.n, args[2].price, queue; empty if it is the whole request
	Message string // one sentence
	Nearest string // known name that was probably meant, empty if none is similar
}

// Kind of an Error.
type Kind uint8

// Kinds of errors, with their HTTP status.
const (
	Invalid  Kind = iota // 400
	NotFound             // 404: no such worker or task
	Conflict             // 409: impossible in the present state, such as revoking a finished task
)

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Receipt is a request whose commands are in the outbox.
type Receipt struct {
	Commands []history.Command
	Replayed bool     // the idempotency key was used before, and these are its commands
	Warnings []string // of the preview
}

// Preview is what a request would do.
type Preview struct {
	Summary  string    // what would be sent
	Targets  []string  // to whom
	Warnings []Warning // consequences
	Held     *Held     // what the targets of a shutdown or drain hold, else nil
	// Confirm is the text that must be typed to confirm, empty if a click is enough.
	Confirm string
}

// Warning is one consequence as a sentence, such as: This leaves queue mail with no consumer.
type Warning struct {
	Message string
	Severe  bool
}

// warnings collects consequences.
type warnings []Warning

func (w *warnings) warn(severe bool, format string, args ...any) {
	*w = append(*w, Warning{Message: fmt.Sprintf(format, args...), Severe: severe})
}

// ControlRequest calls a remote control method of workers.
type ControlRequest struct {
	Method    string
	Arguments map[string]any
	Workers   []string      // empty is every worker
	Expires   time.Duration // how long it may wait to be sent, 60 s if zero
	// NoWarnings leaves out the warnings of the receipt, for which workers may have to be asked.
	NoWarnings bool `json:",omitempty"`
}

// TaskRequest publishes a task.
type TaskRequest struct {
	ID        string // a new one if empty
	Name      string
	Args      json.RawMessage // an array, [] if empty
	Kwargs    json.RawMessage // an object, {} if empty
	Queue     string          // celery if empty
	Countdown time.Duration   // delay from now, not negative
	ETA       time.Time       // earliest start
	Expires   time.Time       // zero is never
	Priority  *uint8          // 0 to 9
	Hard      *float64        // time limits, seconds
	Soft      *float64
	// Root and Parent are ids of tasks of its workflow; empty, they are those that RetryOf gives it.
	Root, Parent string `json:",omitempty"`
	Shadow       string `json:",omitempty"` // a name to show in place of Name
	// Headers are further ones of the message, such as ignore_result, with integers as int64.
	Headers map[string]any `json:",omitempty"`
	// Embed is an object of callbacks, errbacks, chain and chord, made of signatures.
	Embed json.RawMessage `json:",omitempty"`
	// SendWithin is how long it may wait to be sent; zero, as long as it takes.
	SendWithin time.Duration `json:",omitempty"`
	// Serializer writes the message. Empty is that of the task as its workers have reported it, else JSON.
	Serializer celery.Serializer `json:",omitempty"`
	// RetryOf is the id of the task that it retries, empty if none.
	RetryOf string
	// Force publishes even if no worker that replied has registered the task or consumes from the queue.
	Force bool
	// NoWarnings leaves out the warnings of the receipt, for which workers and the broker may have to be asked. It needs Force.
	NoWarnings bool `json:",omitempty"`
	// Original is what Retry returned for the task that it retries; nil looks it up.
	Original *Original `json:"-"`
}

// BulkRequest revokes, terminates or retries many tasks.
type BulkRequest struct {
	Action string      // revoke, terminate, retry
	IDs    []string    // of tasks, or else
	Query  query.Query // all that match it
	Signal string      // of terminate, SIGTERM if empty
	Cap    int         // most tasks to act on, 1 to MaxCap; DefaultCap if zero
	// Objects of a retry lets arguments that only events show have Decimal, UUID, date and datetime, encoded as Kombu 5.3
	// and newer do.
	Objects bool
	// Args and Kwargs of a retry are those of all tasks whose own are not known in full, nil to leave these out.
	Args, Kwargs json.RawMessage
}

// DefaultCap and MaxCap bound a BulkRequest.
const (
	DefaultCap = 1_000
	MaxCap     = 10_000
)

// BulkPreview is what a BulkRequest would do.
type BulkPreview struct {
	Preview
	Matched  history.Count       // tasks that the query matches
	Selected int                 // tasks that it would act on
	States   map[state.State]int // of the selected tasks
	Blocked  []Blocked           // why others are not selected
	Capped   bool                // more tasks match than the cap allows
}

// Blocked is a reason not to act on tasks.
type Blocked struct {
	Reason string // already finished; arguments cut short
	N      int
	IDs    []string // the first few
	Remedy string   // how a retry is possible, empty if nothing is known to help
	// Objects and Typed say that a retry with BulkRequest.Objects, or with Args and Kwargs, has them.
	Objects, Typed bool
}
