package broker

import (
	"context"
	"errors"
	"time"
)

// Errors of a Line that callers tell apart. Those that are neither, nor ErrClosed, say that the broker
// cannot be used for now.
var (
	// ErrNoQueue says that there is no such queue: what was published went nowhere.
	ErrNoQueue = errors.New("no such queue")
	// ErrRefused says that the broker will not do it, however often it is asked: the user may not, or the
	// message is too large. The reason is wrapped beside it.
	ErrRefused = errors.New("refused by the broker")
	// ErrUnsupported says that this kind of broker cannot do it.
	ErrUnsupported = errors.New("not possible with this broker")
)

// Publishing is a message other than an event: a pidbox request or reply, or a task. Values in Headers are nil,
// bool, int64, float64, string, []any or map[string]any.
type Publishing struct {
	ContentType     string // MIME type
	ContentEncoding string // utf-8, binary
	Headers         map[string]any
	CorrelationID   string
	ReplyTo         string // name of a queue
	Expiration      string // milliseconds, empty for never; Redis ignores it
	Priority        uint8  // 0 to 9
	Persistent      bool   // survives a restart of the broker, if the queue does
	Body            []byte
}

// ReplyTo is where workers publish the replies that a Line receives.
type ReplyTo struct {
	Exchange   string `json:"exchange"`
	RoutingKey string `json:"routing_key"`
}

// Line is one connection to a Broker for everything but events. It is safe for concurrent use, but for Reply, which
// one goroutine calls. Once the connection is lost every method returns ErrClosed. An error after which the
// message may yet arrive is possible with each of them: publish only what may be published twice.
type ControlConn interface {
	// Request publishes a pidbox request to every worker's mailbox and returns when the broker has it.
	// receivers is how many mailboxes it reached, or -1 where the broker does not tell.
	Request(ctx context.Context, m Publishing) (receivers int, err error)
	// ReplyTo is where requests ask for their replies.
	ReplyTo() ReplyTo
	// Reply waits for the next reply to a request. What nobody waits for is dropped by the broker after a
	// while.
	ReceiveReply(ctx context.Context) (Publishing, error)
	// Publish sends a task message to a queue and returns when the broker has it. It declares no queue: on
	// RabbitMQ the error is ErrNoQueue if there is none; on Redis a queue begins with its first message.
	Publish(ctx context.Context, queue string, m Publishing) error
	// Event publishes an event to whoever listens, as Celery's dispatcher does, and returns when the broker has it. Its
	// routing key is the event's type with dots for dashes.
	PublishEvent(ctx context.Context, routingKey string, m Publishing) error
	// Survey looks at queues, and at more of them if the broker lists them itself. What fails for a single
	// queue is told in it.
	QueueStats(ctx context.Context, queues []string) (QueueStats, error)
	// Purge removes the messages of a queue that no worker holds, and returns how many they were.
	Purge(ctx context.Context, queue string) (int64, error)
	// Peek returns up to limit messages that wait in a queue, next to be delivered first, and leaves them
	// there. It is ErrUnsupported where looking would change their order.
	Peek(ctx context.Context, queue string, limit int) ([]Publishing, error)
	// Find returns the message of a task that waits in one of queues or is held by a worker, nil if it was not
	// found among those that could be looked at. It is ErrUnsupported like Peek.
	Find(ctx context.Context, queues []string, taskID string) (*Publishing, error)
	// Close ends the line and frees what it holds. It may be called more than once.
	Close() error
}

// Survey is what a broker tells of its queues at one moment. Nil is unknown.
type QueueStats struct {
	At     time.Time
	Source string // how depths were read: management API, passive declare, LLEN
	Queues []Queue
	Broker Info
}

// Info is what a broker tells of itself. Empty and nil are unknown.
type Info struct {
	Kind              string // RabbitMQ, Redis
	Version           string
	Memory            *int64         // bytes in use
	MemoryLimit       *int64         // bytes; maxmemory, or the high watermark
	Clients           *int64         // connections
	VisibilityTimeout *time.Duration // Redis: as configured for Umbel; deliveries older than that are repeated
	Warnings          []string       // sentences: alarms, eviction policies that lose tasks
}

// Queue is one queue. Nil is unknown, which is not 0.
type Queue struct {
	Name      string
	Missing   bool   // RabbitMQ has none of this name
	Error     string // why nothing is known of it, empty if something is
	Ready     *int64 // messages that wait
	Unacked   *int64 // messages that workers hold
	Consumers *int64
	// Totals since the queue began, or since the broker began to count. Delivered includes Redelivered.
	Published, Delivered, Acked, Redelivered *int64
	// Steps are the lists of a Redis queue, next to be consumed first.
	Steps []Step
	// OldestUnacked is when the delivery was made that a worker holds longest.
	OldestUnacked *time.Time
	Type          string // classic, quorum, stream, list
	State         string // as RabbitMQ names it: running, idle, flow, down
	MaxPriority   *int64
	Durable       *bool
}

// Step is the list of one priority step of a Redis queue.
type Step struct {
	Priority int // 0 is the most urgent on Redis
	Ready    int64
}
