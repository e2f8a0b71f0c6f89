// Package broker is the interface between Umbel and message brokers: a Broker that connects, a
// Session that delivers event messages, and a Line that carries remote control and task messages and looks at
// queues. It holds no broker's code and decides nothing about messages.
package broker

import (
	"context"
	"errors"
	"time"
)

// ErrClosed is returned by a Session that has ended: by Close, or because the connection was lost.
// The cause, if there is one, is wrapped beside it.
var ErrClosed = errors.New("session closed")

const (
	// MaxBatch is the greatest number of messages that Receive returns at once.
	MaxBatch = 64
	// MaxGather is the longest that Receive holds a message back to gather more of them.
	MaxBatchDelay = 5 * time.Millisecond
)

// Message is one delivery. Body is owned by the receiver.
type Message struct {
	Body            []byte
	ContentType     string // MIME type as the sender declared it, empty if it declared none
	ContentEncoding string // utf-8, binary, or empty
	RoutingKey      string
	Redelivered     bool
	Tag             uint64 // names the delivery within its session, rising by 1 from 1
}

// Broker is one place that Celery events come from. It is safe for concurrent use.
type Broker interface {
	// Connect dials, declares what Umbel needs and starts consuming. It returns when messages
	// may flow, or with an error that says what to do about it. ctx bounds the call only.
	Subscribe(ctx context.Context) (EventStream, error)
	// Open dials a connection for everything but events. ctx bounds the call only.
	OpenControl(ctx context.Context) (ControlConn, error)
	// String is the broker's URL with its password masked.
	String() string
}

// Session is one connection to a Broker that delivers events. Receive is called from one goroutine, the other
// methods from any.
type EventStream interface {
	// Receive waits for at least one message, then gathers what arrives within MaxGather, at most
	// MaxBatch. It returns ctx's error when ctx ends, and ErrClosed once the session has ended.
	// It returns no error beside messages, and ctx's end loses none.
	Receive(ctx context.Context) ([]Message, error)
	// Ack tells the broker that every message with a tag up to and including tag is safe here.
	// Messages never acknowledged are delivered again, if the broker can. A tag acknowledged
	// before does nothing; one that Receive has not returned yet is an error and changes nothing.
	Ack(tag uint64) error
	// Done is closed once the session has ended, also while nobody receives. Messages may be left to receive.
	Done() <-chan struct{}
	// Err is why the session has ended, ErrClosed with its cause beside it; nil while it has not.
	Err() error
	// Close ends the session and frees what it holds; a session that has ended by itself wants it
	// too. It may be called more than once.
	Close() error
}

// Forgetful is a Broker that may keep nothing for those who are not connected.
type Ephemeral interface {
	// Forgets says that what is published between one session and the next is never delivered.
	Ephemeral() bool
}

// Lossy is a Session that drops messages when more arrive than are received, since its broker would cut it off
// otherwise.
type DropCounter interface {
	// Dropped is how many messages it has dropped. It may be called from any goroutine, also after Close.
	Dropped() uint64
}
