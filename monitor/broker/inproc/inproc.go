// Package inproc is a broker inside the process, for the demo, tests and benchmarks: producers publish events, one
// event stream at a time receives them, and what it does not acknowledge goes to the next one. A full broker
// blocks its producers, so no event is lost. Simulated workers receive requests, reply to them, and consume from
// task queues. It stores nothing and uses no wire format.
package inproc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/umbelhq/umbel/monitor/broker"
)

const defaultLimit = 4096

// Options of a Broker. The zero value is useful.
type Options struct {
	// Limit is how many messages may wait to be received, 4,096 if zero or less. Messages received
	// but not acknowledged do not count.
	Limit int
	// Queues, if not nil, returns simulated queues, which QueueStats reports instead of the broker's own of the same
	// names.
	Queues func(ctx context.Context) []broker.Queue
}

// Broker holds messages between producers and an event stream. It is safe for concurrent use.
type Broker struct {
	limit     int
	simulated func(ctx context.Context) []broker.Queue // nil if there are none

	mu       sync.Mutex
	messages []broker.Message // oldest first: received and not acknowledged, then unread
	received int              // how many of messages the event stream has received
	waiting  bool             // a producer is blocked
	writable chan struct{}    // closed when producers may continue, then replaced
	stream   *eventStream     // nil when nobody is connected
	refusal  error

	connsMu     sync.Mutex              // guards mailboxes, and the ends of control connections; not taken with another lock
	conns       map[string]*controlConn // open, by the routing key of their replies
	mailboxes   map[int]func(broker.Publishing)
	lastMailbox int

	peersMu sync.Mutex // guards peers; not taken with another lock
	peers   map[*peerConn]struct{}

	queuesMu sync.Mutex // guards the queues and their consumers; not taken with another lock
	queues   map[string]*queue
}

// New returns a Broker without messages.
func New(o Options) *Broker {
	return &Broker{
		limit:     cmp.Or(max(o.Limit, 0), defaultLimit),
		simulated: o.Queues,
		writable:  make(chan struct{}),
		conns:     make(map[string]*controlConn),
		mailboxes: make(map[int]func(broker.Publishing)),
		queues:    make(map[string]*queue),
		peers:     make(map[*peerConn]struct{}),
	}
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
		return b.writable
	}
	b.messages = append(b.messages, m)
	if s := b.stream; s != nil && s.wanted > 0 && b.unread() >= s.wanted {
		s.wake()
	}
	return nil
}

// unread counts the messages that wait to be received. The caller holds mu.
func (b *Broker) unread() int { return len(b.messages) - b.received }

// Subscribe starts an event stream. It fails with the error given to Refuse, and while another event stream is open.
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
		return nil, errors.New("in-memory broker has an event stream already: close it first")
	}
	b.stream = newEventStream(b)
	return b.stream, nil
}

// String names the broker.
func (b *Broker) String() string { return "memory://" }

// Fail ends the current event stream, if there is one, and all control connections, as lost connections would: with ErrClosed and
// cause, which must not be nil. What the event stream had not acknowledged waits for the next one.
func (b *Broker) Fail(cause error) {
	err := fmt.Errorf("%w: %w", broker.ErrClosed, cause)
	b.failConns(err)
	b.failPeers(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stream != nil {
		b.stream.end(err)
	}
}

// Refuse makes every later Subscribe and OpenControl fail with err, until it is called with nil.
func (b *Broker) Refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusal = err
}
