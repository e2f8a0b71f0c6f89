// Package relay is the transactional outbox: a relay takes commands that were committed, has them sent, and records
// what became of them, so that a crash at any moment loses none. Failures back off and end as dead letters; a broker
// that is away only delays. It neither knows what a command says nor how it is sent.
package relay

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// ErrUnavailable is what a Sender's error wraps when the broker cannot be reached: trying again later costs no attempt.
var ErrUnavailable = errors.New("broker unavailable")

// ErrPermanent is what a Sender's error wraps when trying again cannot help.
var ErrPermanent = errors.New("cannot be sent")

// Sender sends commands. It is called by several goroutines.
type Sender interface {
	// Send returns when the broker has the command. It honours ctx, which ends with the send timeout. A command may be
	// sent again after an error, and after a crash.
	Send(ctx context.Context, c history.Command) (Sent, error)
}

// Sent is a command that the broker has.
type Sent struct {
	Expected []string // who is to answer
	// Answers waits for the answers and tells them as they come in; nil if nobody is to answer. complete says that
	// everybody did. It honours ctx.
	Replies func(ctx context.Context, report func([]history.Reply)) (complete bool)
}

// Options of a Relay. Store and Sender are required; the rest has defaults.
type Options struct {
	Store  history.Outbox
	Sender Sender

	Batch        int           // most commands in flight, 64 if zero
	Parallel     int           // most groups that are sent at once, 8 if zero
	PollInterval time.Duration // how often to look without being woken, 1 s if zero
	SendTimeout  time.Duration // for one command, 10 s if zero
	MaxRetries   int           // failed attempts before a dead letter, 8 if zero
	BackoffBase  time.Duration // 1 s if zero
	BackoffCap   time.Duration // 5 min if zero
	Cooldown     time.Duration // how long the breaker stays open, 2 s if zero
	ClaimTimeout time.Duration // after which a claim counts as left behind, 1 min if zero
	DrainTimeout time.Duration // for what is in flight when Run is to end, 10 s if zero

	Now    func() time.Time // nil means time.Now
	Jitter func() float64   // 0 to 1; nil means random
	Logger *slog.Logger     // nil discards
}

// complete checks the options and sets defaults.
func (o Options) complete() (Options, error) {
	if o.Store == nil || o.Sender == nil {
		return o, errors.New("a relay needs a store and a sender")
	}
	o.Batch, o.Parallel, o.MaxRetries = cmp.Or(o.Batch, 64), cmp.Or(o.Parallel, 8), cmp.Or(o.MaxRetries, 8)
	o.PollInterval, o.SendTimeout = cmp.Or(o.PollInterval, time.Second), cmp.Or(o.SendTimeout, 10*time.Second)
	o.BackoffBase, o.BackoffCap = cmp.Or(o.BackoffBase, time.Second), cmp.Or(o.BackoffCap, 5*time.Minute)
	o.Cooldown, o.ClaimTimeout = cmp.Or(o.Cooldown, 2*time.Second), cmp.Or(o.ClaimTimeout, time.Minute)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, 10*time.Second)
	if min(o.Batch, o.Parallel, o.MaxRetries) < 0 || min(o.PollInterval, o.SendTimeout, o.BackoffBase, o.BackoffCap, o.Cooldown,
		o.ClaimTimeout, o.DrainTimeout) < 0 {
		return o, errors.New("options of a relay are negative")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Status says how the relay is doing.
type Status struct {
	BreakerOpen  bool      // the breaker: the broker is away and nothing is sent until Until
	BreakerUntil time.Time // when the next command is sent to see whether the broker is back
	LastError    string    // why the last command that failed did, empty once one was sent after it
	Sent         uint64    // since the start
	Retried      uint64    // failed attempts that another one follows
	Deferred     uint64    // attempts that found the broker away
	DeadLettered uint64
	Expired      uint64
	Reclaimed    uint64
}
