// Package relay sends what is in a transactional outbox: it claims committed commands, has them sent, and records the outcome,
// so that a crash at any moment loses none. Failures are retried with back-off and end as dead letters; an unreachable broker
// only delays. It knows neither what a command means nor how it is sent.
package relay

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// ErrUnavailable is wrapped by a Sender's error if the broker cannot be reached. It does not count as an attempt.
var ErrUnavailable = errors.New("broker unavailable")

// ErrPermanent is wrapped by a Sender's error if retrying cannot help.
var ErrPermanent = errors.New("cannot be sent")

// Elsewhere wraps a Sender's error if what failed or did not answer is not the broker: the command is tried again, and no
// other waits for it.
func Elsewhere(err error) error { return elsewhere{err} }

type elsewhere struct{ error }

// Unwrap returns the error of the Sender.
func (e elsewhere) Unwrap() error { return e.error }

// LaterError is the error of a command that goes on: it is to be sent again after a while, as often as it takes. That is no
// failed attempt, and survives a restart.
type LaterError struct {
	After    time.Duration
	Progress string // how far it is, for display
	Payload  []byte // the new one, nil for the old one
}

// Error returns the progress.
func (e *LaterError) Error() string { return e.Progress }

// Sender sends commands. It is safe for concurrent use.
type Sender interface {
	// Send returns when the broker has the command. It honours ctx, which ends with the send timeout. A command may be
	// sent again after an error, and after a crash.
	Send(ctx context.Context, c history.Command) (Sent, error)
}

// Sent is a command that the broker has.
type Sent struct {
	Expected  []string // who should reply
	Payload   []byte   // what to keep of that of the command, nil for all
	Elsewhere bool     // it did not go to the broker, which may be unreachable still
	// Replies waits for the replies and reports them as they arrive, until all have or ctx ends; nil if none are expected.
	// complete reports whether everybody replied.
	Replies func(ctx context.Context, report func([]history.Reply)) (complete bool)
}

// Options of a Relay. Store and Sender are required; the rest has defaults.
type Options struct {
	Store  history.Outbox
	Sender Sender

	Parallel     int           // most groups that are sent at once, 8 if zero
	PollInterval time.Duration // between polls of the store unless woken, 1 s if zero
	MaxRetries   int           // failed attempts before a command becomes a dead letter, 8 if zero
	MaxBackoff   time.Duration // longest wait before a failed command is retried, 5 min if zero
	Cooldown     time.Duration // how long the breaker stays open, 2 s if zero
	DrainTimeout time.Duration // for what is in flight when ctx ends, 10 s if zero

	Now    func() time.Time // nil means time.Now
	Logger *slog.Logger     // nil discards
}

// complete checks the options and sets defaults.
func (o Options) complete() (Options, error) {
	if o.Store == nil || o.Sender == nil {
		return o, errors.New("a relay needs a store and a sender")
	}
	o.Parallel, o.MaxRetries = cmp.Or(o.Parallel, 8), cmp.Or(o.MaxRetries, 8)
	o.PollInterval, o.MaxBackoff = cmp.Or(o.PollInterval, time.Second), cmp.Or(o.MaxBackoff, 5*time.Minute)
	o.Cooldown, o.DrainTimeout = cmp.Or(o.Cooldown, 2*time.Second), cmp.Or(o.DrainTimeout, 10*time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o, nil
}

// Status is how a Relay is doing. Counts are since the start.
type Status struct {
	BreakerOpen  bool      // the broker is unreachable, and nothing is sent until BreakerUntil
	BreakerUntil time.Time // when the next command is sent as a probe
	LastError    string    // of the last command that failed, empty once another was sent
	Sent         uint64    // commands that the broker has
	Retried      uint64    // failed attempts that are followed by another
	Deferred     uint64    // attempts that found the broker unreachable
	DeadLettered uint64
	Expired      uint64
	Reclaimed    uint64
}
