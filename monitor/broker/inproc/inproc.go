// Package inproc is a broker inside the process, for the demo, tests and benchmarks: producers
// publish events, one session at a time receives, and what it never acknowledged goes to the next one. A full broker
// makes its producers wait, so no event is lost. Simulated workers listen for requests, answer them, and consume from
// queues of tasks. It stores nothing and speaks no wire format.
package inproc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

const defaultLimit = 4096

// Options of a Broker. The zero value is useful.
type Options struct {
	// Limit is how many messages may wait to be received, 4,096 if zero or less. Messages received
	// but not acknowledged do not count.
	Limit int
	Now   func() time.Time // nil means time.Now
	// Queues, if not nil, tells of queues that somebody simulates: surveys have them in place of the broker's own of the
	// same names.
	Queues func(ctx context.Context) []broker.Queue
}

// Broker holds messages between producers and a session. It is safe for concurrent use.
type Broker struct {
	limit     int
	now       func() time.Time
	simulated func(ctx context.Context) []broker.Queue // nil if there are none

	mu       sync.Mutex
	messages []broker.Message // oldest first: received and not acknowledged, then unread
	received int              // how many of messages the session has received
	waiting  bool             // a producer waits for room
	room     chan struct{}    // closed when there is room again, then replaced
	stream   *eventStream     // nil when nobody is connected
	refusal  error

	connsMu     sync.Mutex              // guards what is of requests, and the ends of lines; not taken with another
	conns       map[string]*controlConn // that are open, by the keys of their replies
	mailboxes   map[int]func(broker.Publishing)
	lastMailbox int

	queuesMu sync.Mutex // guards the queues and their consumers; not taken with another
	queues   map[string]*queue
}

// New returns a Broker without messages.
func New(o Options) *Broker {
	b := &Broker{
		limit:     cmp.Or(max(o.Limit, 0), defaultLimit),
		now:       o.Now,
		simulated: o.Queues,
		room:      make(chan struct{}),
		conns:     make(map[string]*controlConn),
		mailboxes: make(map[int]func(broker.Publishing)),
		queues:    make(map[string]*queue),
	}
	if b.now == nil {
		b.now = time.Now
	}
	return b
}

// Publish adds m to the messages that wait to be received, and waits for room if they are at the
// limit. The broker owns m.Body from then on, and sets Redelivered and Tag itself. It returns ctx's
// error if ctx ends first.
func (b *Broker) Publish(ctx context.Context, m broker.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.Redelivered, m.Tag = false, 0
	for {
		room := b.add(m)
		if room == nil {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add appends m, or returns a channel that is closed when trying again makes sense.
func (b *Broker) add(m broker.Message) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unread() >= b.limit {
		b.waiting = true
		return b.room
	}
	b.messages = append(b.messages, m)
	if s := b.stream; s != nil && s.wanted > 0 && b.unread() >= s.wanted {
		s.wake()
	}
	return nil
}

// unread counts the messages that wait to be received. The caller holds mu.
func (b *Broker) unread() int { return len(b.messages) - b.received }

// Connect starts a session. It fails with the error given to Refuse, and while another session is open.
func (b *Broker) Subscribe(ctx context.Context) (broker.EventStream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refusal != nil {
		return nil, b.refusal
	}
	if b.stream != nil {
		return nil, errors.New("in-memory broker has a session already: close it first")
	}
	b.stream = newEventStream(b)
	return b.stream, nil
}

// String names the broker.
func (b *Broker) String() string { return "memory://" }

// Fail ends the current session, if there is one, and all lines, as lost connections would: with ErrClosed and
// cause, which must not be nil. What the session had not acknowledged waits for the next one.
func (b *Broker) Fail(cause error) {
	err := fmt.Errorf("%w: %w", broker.ErrClosed, cause)
	b.failConns(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stream != nil {
		b.stream.end(err)
	}
}

// Refuse makes every later Connect and Open fail with err, until it is called with nil.
func (b *Broker) Refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusal = err
}
