// Package outbox is the transactional outbox: a relay takes commands that were committed, has them sent, and records
// what became of them, so that a crash at any moment loses none. Failures back off and end as dead letters; a broker
// that is away only delays. It neither knows what a command says nor how it is sent.
package outbox

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/umbelhq/umbel/monitor/store"
)

// ErrUnavailable is what a Sender's error wraps when the broker cannot be reached: trying again later costs no attempt.
var ErrUnavailable = errors.New("broker unavailable")

// ErrPermanent is what a Sender's error wraps when trying again cannot help.
var ErrPermanent = errors.New("cannot be sent")

// Sender sends commands.
type Sender interface {
	// Send returns when the broker has the command. It honours ctx, which ends with the send timeout.
	Send(ctx context.Context, c store.Command) (Sent, error)
}

// Sent is a command that the broker has.
type Sent struct {
	Expected []string // who is to answer
	// Answers waits for the answers and returns them; nil if nobody is to answer. complete says that everybody did.
	Answers func(ctx context.Context) (answers []store.Answer, complete bool)
}

// Options of a Relay. Store and Sender are required; the rest has defaults.
type Options struct {
	Store  store.Outbox
	Sender Sender

	Batch       int           // commands claimed at once, 64 if zero
	Poll        time.Duration // how often to look without being woken, 1 s if zero
	SendTimeout time.Duration // for one command, 10 s if zero
	MaxRetries  int           // failed attempts before a dead letter, 8 if zero
	BackoffBase time.Duration // 1 s if zero
	BackoffCap  time.Duration // 5 min if zero
	Cooldown    time.Duration // how long the breaker stays open, 2 s if zero
	Stale       time.Duration // after which a claim counts as left behind, 1 min if zero
	Drain       time.Duration // for what is in flight when Run is to end, 10 s if zero

	Now    func() time.Time // nil means time.Now
	Jitter func() float64   // 0 to 1; nil means random
	Logger *slog.Logger     // nil discards
}

// Relay sends what is in an outbox. It is safe for concurrent use.
type Relay struct{}

// New validates o and starts nothing.
func New(o Options) (*Relay, error) { return &Relay{}, nil }

// Run relays until ctx ends, then waits for what is in flight, at most Drain. It returns nil.
func (r *Relay) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Wake says that there is something new to send.
func (r *Relay) Wake() {}

// Changed returns a channel that is closed when some command has changed.
func (r *Relay) Changed() <-chan struct{} { return nil }

// Wait returns the commands as they are once all are final, or ctx has ended.
func (r *Relay) Wait(ctx context.Context, ids []int64) ([]store.Command, error) { return nil, nil }

// Status says how the relay is doing.
type Status struct {
	Open      bool // the breaker: nothing is sent until Until
	Until     time.Time
	LastError string
	Sent      uint64 // since the start
	Retried   uint64
	Deferred  uint64
	Died      uint64
	Reclaimed uint64
}

// Status returns it.
func (r *Relay) Status() Status { return Status{} }
