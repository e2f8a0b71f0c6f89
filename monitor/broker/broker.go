// Package broker is the interface between Umbel and message brokers: a Broker that connects, an EventStream that
// delivers event messages, and a ControlConn that carries remote control and task messages and inspects queues. It
// contains no code for a specific broker and does not interpret messages.
package broker

import (
	"context"
	"errors"
	"time"
)

// ErrClosed is returned by an EventStream or ControlConn that has ended: by Close, or because the connection was
// lost. The cause, if there is one, is wrapped beside it.
var ErrClosed = errors.New("connection closed")

const (
	// MaxBatch is the greatest number of messages that Receive returns at once.
	MaxBatch = 64
	// MaxBatchDelay is the longest that Receive delays a message to gather more.
	MaxBatchDelay = 5 * time.Millisecond
)

// Message is one delivery. Body is owned by the receiver.
type Message struct {
	Body            []byte
	ContentType     string // MIME type as the sender declared it, empty if it declared none
	ContentEncoding string // utf-8, binary, or empty
	RoutingKey      string
	Redelivered     bool
	Tag             uint64 // number of the delivery within its event stream, from 1
}

// Broker is a message broker that Celery uses. It is safe for concurrent use.
type Broker interface {
	// Subscribe connects, declares what Umbel needs and starts consuming events. Its error says what to do about it.
	// ctx bounds the call only.
	Subscribe(ctx context.Context) (EventStream, error)
	// OpenControl opens a connection for everything but events. ctx bounds the call only.
	OpenControl(ctx context.Context) (ControlConn, error)
	// String is the broker's URL with its password masked.
	String() string
}

// EventStream is a connection to a Broker that delivers events. Receive is called from one goroutine, the other
// methods from any.
type EventStream interface {
	// Receive waits for at least one message, then gathers up to MaxBatch messages that
	// arrive within MaxBatchDelay. It returns ctx's error when ctx ends, and ErrClosed once the event stream has ended.
	// It returns either messages or an error, and loses no message when ctx ends.
	Receive(ctx context.Context) ([]Message, error)
	// Ack acknowledges every message with a tag up to and including tag.
	// Messages never acknowledged are delivered again, if the broker can. A tag acknowledged
	// before does nothing; one that Receive has not returned yet is an error and changes nothing.
	Ack(tag uint64) error
	// Done is closed once the event stream has ended, even if nobody receives. Messages may be left to receive.
	Done() <-chan struct{}
	// Err is why the event stream has ended, ErrClosed with its cause beside it; nil while it has not.
	Err() error
	// Close ends the event stream and releases its resources. It must be called even if the stream has ended by
	// itself, and may be called more than once.
	Close() error
}

// Ephemeral is implemented by a Broker that may not store events while Umbel is disconnected.
type Ephemeral interface {
	// Ephemeral reports whether events published between one event stream and the next are lost.
	Ephemeral() bool
}

// DropCounter is implemented by an EventStream that drops messages when more arrive than are received, because its
// broker would disconnect it otherwise.
type DropCounter interface {
	// Dropped returns the number of messages dropped so far. It may be called from any goroutine, also after Close.
	Dropped() uint64
}
