package control

import (
	"context"
	"encoding/json"
	"time"
)

// Fresh is how old an inspection may be before it is asked for again.
const Fresh = 5 * time.Second

// InspectorOptions of an Inspector. Client is required.
type InspectorOptions struct {
	Client *Client
	// Alive returns the names of the workers that are expected to answer.
	Alive func() []string
	Now   func() time.Time
}

// Inspector asks workers what they are doing, at most once per worker and Fresh, however many want to know. It is safe
// for concurrent use.
type Inspector struct{}

// NewInspector validates o and starts nothing.
func NewInspector(o InspectorOptions) (*Inspector, error) { return &Inspector{}, nil }

// Run asks for what was wanted lately, until ctx ends. It returns nil.
func (i *Inspector) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Node returns what is known of a worker and has it asked again if that is not Fresh. It does not wait.
func (i *Inspector) Node(name string) Inspection { return Inspection{} }

// Ask returns what is known of a worker, asked now unless it is Fresh.
func (i *Inspector) Ask(ctx context.Context, name string) Inspection { return Inspection{} }

// Topology returns which workers have which tasks and queues, asked now unless it is Fresh. It does not fail: whom it
// could not ask it names.
func (i *Inspector) Topology(ctx context.Context) Topology { return Topology{} }

// Known returns the Topology as last asked, and has it asked again if it is not Fresh. It does not wait.
func (i *Inspector) Known() Topology { return Topology{} }

// Changed returns a channel that is closed when something new is known.
func (i *Inspector) Changed() <-chan struct{} { return nil }

// Inspection is what one worker told of itself. Secrets are masked in all of it.
type Inspection struct {
	Node   string
	At     time.Time // when it was last asked and answered, zero if never
	Asking bool      // it is being asked
	// Errors say why a part is missing, by method: no answer from celery@w2 in 2 s.
	Errors map[string]string

	Stats      *Stats
	Active     []Request
	Reserved   []Request
	Scheduled  []Scheduled
	Revoked    []string
	Registered []Registered
	Queues     []Consumed
	Conf       map[string]json.RawMessage
	Clock      *int64
	Report     string // of celery report
}

// Stats of a worker. Nil and empty are unknown.
type Stats struct {
	PID           int64
	Clock         int64
	Uptime        time.Duration
	Total         map[string]int64 // tasks accepted since it started, by name
	PrefetchCount *int64
	Pool          Pool
	Autoscaler    *Autoscaler
	Broker        map[string]json.RawMessage // masked
	RUsage        map[string]json.RawMessage
	Raw           json.RawMessage // everything, masked
}

// Pool of a worker.
type Pool struct {
	Implementation   string // as stats has it: celery.concurrency.prefork:TaskPool
	Kind             string // prefork, threads, solo, gevent, eventlet
	MaxConcurrency   *int64
	Processes        []int64 // pids
	Slots            *int64  // tasks that can run at once now
	MaxTasksPerChild string
	SoftLimit, Hard  *float64 // default time limits, seconds
	Writes           map[string]json.RawMessage
}

// Autoscaler of a worker that has one.
type Autoscaler struct{ Min, Max, Current, Quantity int64 }

// Request is a task that a worker holds.
type Request struct {
	ID           string
	Name         string
	Type         string
	Args, Kwargs string    // Python's repr, as the worker sent it
	StartedAt    time.Time // zero if it has not
	PID          *int64    // of the pool process
	Acknowledged bool
	Queue        string // routing key of its delivery
	Priority     *int64
	Redelivered  *bool
	Soft, Hard   *float64 // time limits of this task, seconds
}

// Scheduled is a task that waits in a worker for its ETA.
type Scheduled struct {
	ETA     time.Time
	Request Request
}

// Registered is a task that a worker can run.
type Registered struct {
	Name string
	Info map[string]string // rate_limit, exchange, routing_key, …
}

// Consumed is a queue that a worker consumes from.
type Consumed struct {
	Name         string
	Exchange     string
	ExchangeType string
	RoutingKey   string
	Durable      *bool
	Arguments    map[string]json.RawMessage
	MaxPriority  *int64
	Raw          json.RawMessage
}

// Topology is which workers have which tasks and queues.
type Topology struct {
	At time.Time
	// Tasks are the workers by the names of the tasks that they have registered, Queues by the queues that they
	// consume from.
	Tasks, Queues map[string][]string
	Asked         []string // workers that should have answered
	Missing       []string // those that did not
}
