package broker

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Errors of a ControlConn. Any other error but ErrClosed is temporary.
var (
	// ErrNoQueue: the queue does not exist, and the message was not delivered.
	ErrNoQueue = errors.New("no such queue")
	// ErrRefused: the broker refuses permanently, for lack of permission or because the message is too large. The
	// reason is wrapped beside it.
	ErrRefused = errors.New("refused by the broker")
	// ErrUnsupported: this kind of broker has no such operation.
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

// ReplyTo is where workers publish the replies that a ControlConn receives.
type ReplyTo struct {
	Exchange   string `json:"exchange"`
	RoutingKey string `json:"routing_key"`
}

// ControlConn is a control connection: one connection to a Broker for everything but events. It is safe for
// concurrent use, except ReceiveReply, which one goroutine calls. Once the connection is lost every method returns
// ErrClosed. After an error the message may still arrive: publish only what may be published twice.
type ControlConn interface {
	// Request publishes a pidbox request to every worker's mailbox and returns when the broker has it.
	// receivers is how many mailboxes it reached, or -1 if the broker does not report it.
	Request(ctx context.Context, m Publishing) (receivers int, err error)
	// ReplyTo is the address that requests name for their replies.
	ReplyTo() ReplyTo
	// ReceiveReply waits for the next reply to a request. The broker drops replies that are not received for a while.
	ReceiveReply(ctx context.Context) (Publishing, error)
	// Publish sends a task message to a queue and returns when the broker has it. It declares no queue: on
	// RabbitMQ the error is ErrNoQueue if there is none; on Redis a queue begins with its first message.
	Publish(ctx context.Context, queue string, m Publishing) error
	// PublishEvent publishes an event as Celery's dispatcher does, and returns when the broker has it. Its
	// routing key is the event's type with dots for dashes.
	PublishEvent(ctx context.Context, routingKey string, m Publishing) error
	// QueueStats returns statistics of queues, and of further ones if the broker lists them itself. A failure for a
	// single queue is reported in its Queue.Error.
	QueueStats(ctx context.Context, queues []string) (QueueStats, error)
	// Purge removes the ready messages of a queue, those that no worker has taken, and returns their number.
	Purge(ctx context.Context, queue string) (int64, error)
	// Peek returns up to limit messages ready for delivery in a queue, next to be delivered first, and leaves them
	// there. It returns ErrUnsupported if reading would change their order.
	Peek(ctx context.Context, queue string, limit int) ([]Publishing, error)
	// Find returns the message of a task that waits in one of queues or is unacknowledged, nil if it is not among
	// the messages searched. It returns ErrUnsupported like Peek.
	Find(ctx context.Context, queues []string, taskID string) (*Publishing, error)
	// Close ends the connection and releases its resources. It may be called more than once.
	Close() error
}

// QueueObjecter is a ControlConn whose broker describes queues as JSON objects of its own.
type QueueObjecter interface {
	// QueueObjects returns the objects of those queues that exist, in the broker's order, or ErrUnsupported if its API is
	// not configured.
	QueueObjects(ctx context.Context, queues []string) ([]json.RawMessage, error)
}

// QueueStats is the state of queues at one moment, as the broker reports it. Nil is unknown.
type QueueStats struct {
	At     time.Time
	Source string // how depths were read: management API, passive declare, LLEN
	Queues []Queue
	Broker Info
}

// Info is what a broker reports of itself. Empty and nil are unknown.
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
	Missing   bool   // RabbitMQ has no queue of this name
	Error     string // why nothing is known of the queue, empty otherwise
	Ready     *int64 // messages ready for delivery
	Unacked   *int64 // messages delivered and not acknowledged
	Consumers *int64
	// Totals since the queue began, or since the broker began to count. Delivered includes Redelivered.
	Published, Delivered, Acked, Redelivered *int64
	// Steps are the lists of a Redis queue, next to be consumed first.
	Steps []Step
	// OldestUnacked is the time of the oldest delivery that is not acknowledged.
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
