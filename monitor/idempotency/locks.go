package idempotency

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Redis runs commands. Any client can be one; the package goredis makes one of go-redis.
type Redis interface {
	// Do runs a command, whose arguments are strings and integers, and returns its reply: nil for none, a string or
	// []byte, or an int64. It is safe for concurrent use.
	Do(ctx context.Context, args ...any) (any, error)
}

// LockOptions are options of Locks. The zero value is what people deploy, but for the fenced values.
type LockOptions struct {
	// TTL is how long a lock is held that is neither completed, released nor extended; 10 minutes if zero. A call that runs
	// for longer can run twice.
	TTL time.Duration
	// CompletionTTL is how long a completed call is not repeated, a day if zero.
	CompletionTTL time.Duration
	// Plain writes values without tokens, for programs that expect "processing" and "completed" exactly. A worker whose
	// lock has expired can then complete and release the lock of another. Values of both forms are read in any case.
	// Commands must not be sent again by the client when a reply is lost: SET NX would find its own key.
	Plain bool
}

// Locks are the locks of calls in one Redis: a key "lock:" + fingerprint for each. They are safe for concurrent use.
type Locks struct {
	redis              Redis
	ttl, completionTTL time.Duration
	plain              bool
}

// NewLocks returns the locks in a Redis, or an error that names the option that is wrong.
func NewLocks(r Redis, o LockOptions) (*Locks, error) {
	l := &Locks{redis: r, ttl: cmp.Or(o.TTL, 10*time.Minute), completionTTL: cmp.Or(o.CompletionTTL, 24*time.Hour), plain: o.Plain}
	switch {
	case l.ttl < time.Millisecond:
		return nil, fmt.Errorf("TTL %v: must be at least a millisecond", o.TTL)
	case l.completionTTL < time.Millisecond:
		return nil, fmt.Errorf("CompletionTTL %v: must be at least a millisecond", o.CompletionTTL)
	}
	return l, nil
}

// Reason is why a call does not run.
type Reason string

// Reasons, as the result of a task that was skipped names them.
const (
	AlreadyCompleted    Reason = "already_completed"
	ConcurrentExecution Reason = "concurrent_execution"
)

// SkippedError says that a call must not run. As JSON it is what such a task returns:
//
//	{"status": "skipped", "reason": "already_completed"}
type SkippedError struct {
	Reason Reason
	Holder LockValue // who has the key; zero if its value is neither plain nor fenced
}

// Error implements error.
func (e *SkippedError) Error() string { return "skipped: " + string(e.Reason) }

// MarshalJSON implements json.Marshaler.
func (e *SkippedError) MarshalJSON() ([]byte, error) {
	return []byte(`{"status":"skipped","reason":"` + string(e.Reason) + `"}`), nil
}

// ErrLost says that a lock has expired, or that its key holds something else.
var ErrLost = errors.New("the lock was lost")

// Lock is the right to run a call until it expires. It is safe for concurrent use.
type Lock struct {
	locks *Locks
	key   string
	value LockValue
}

// attempts is how often Acquire tries again after a key has expired that it found.
const attempts = 3

// Acquire takes the lock of a call. The error is a [*SkippedError] if the call has completed or runs elsewhere. taskID is
// written into a fenced value, so that others see who holds the lock; it may be empty, and is left out where it is longer
// than 512 bytes or not UTF-8.
func (l *Locks) Acquire(ctx context.Context, fingerprint, taskID string) (*Lock, error) {
	lock := &Lock{locks: l, key: KeyPrefix + fingerprint, value: LockValue{State: Processing}}
	if !l.plain {
		var token [16]byte
		_, _ = rand.Read(token[:]) // never fails
		lock.value.Token = hex.EncodeToString(token[:])
		if isTaskID(taskID) {
			lock.value.TaskID = taskID
		}
	}
	for range attempts {
		reply, err := l.redis.Do(ctx, "SET", lock.key, lock.value.String(), "NX", "PX", l.ttl.Milliseconds())
		if err != nil {
			return nil, fmt.Errorf("acquire %s: %w", lock.key, err)
		}
		if reply != nil {
			return lock, nil
		}
		if reply, err = l.redis.Do(ctx, "GET", lock.key); err != nil {
			return nil, fmt.Errorf("acquire %s: %w", lock.key, err)
		}
		switch found, ok := text(reply); {
		case !ok:
			continue // it expired meanwhile
		case found == lock.value.String() && !l.plain:
			return lock, nil // the reply was lost, and the client sent the command again
		default:
			return nil, skipped(found)
		}
	}
	return nil, &SkippedError{Reason: ConcurrentExecution}
}

// skipped returns why a call does not run whose key has a value. Anything but completed stands for a run, as it does for
// those who only compare with that.
func skipped(found string) *SkippedError {
	e := &SkippedError{Reason: ConcurrentExecution}
	if e.Holder, _ = ParseLockValue(found); e.Holder.State == Completed {
		e.Reason = AlreadyCompleted
	}
	return e
}

// text returns a reply that is a string, false if there is none.
func text(reply any) (string, bool) {
	switch s := reply.(type) {
	case string:
		return s, true
	case []byte:
		return string(s), true
	default:
		return "", false
	}
}

// Value returns what the key holds while the lock is held.
func (l *Lock) Value() LockValue { return l.value }

// Scripts change a key only while it holds what it should. They return 1 if it was changed, or is as it should be.
const (
	// A lock that has expired and that nobody took is completed too: the call did run.
	completeScript = `local v = redis.call("GET", KEYS[1])
if v == ARGV[1] or v == ARGV[2] or not v then
  redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3])
  return 1
end
return 0`
	releaseScript = `local v = redis.call("GET", KEYS[1])
if not v then return 1 end
if v == ARGV[1] then return redis.call("DEL", KEYS[1]) end
return 0`
	extendScript = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
return 0`
)

// Complete notes that the call has run: it is skipped until the CompletionTTL has passed. It is ErrLost if another has the
// key. Completing twice does no harm.
func (l *Lock) Complete(ctx context.Context) error {
	done := l.value
	done.State = Completed
	ttl := l.locks.completionTTL.Milliseconds()
	if l.locks.plain {
		_, err := l.locks.redis.Do(ctx, "SET", l.key, done.String(), "PX", ttl)
		return l.explain("complete", err)
	}
	return l.run(ctx, "complete", completeScript, l.value.String(), done.String(), ttl)
}

// Release gives the lock up, so that the call can run again, as after a failure. It is ErrLost if another has the key, and
// if the call was completed.
func (l *Lock) Release(ctx context.Context) error {
	if l.locks.plain {
		_, err := l.locks.redis.Do(ctx, "DEL", l.key)
		return l.explain("release", err)
	}
	return l.run(ctx, "release", releaseScript, l.value.String())
}

// Extend holds the lock for another TTL from now on. It is ErrLost if the lock has expired, even if nobody else has taken
// it: another may have run meanwhile.
func (l *Lock) Extend(ctx context.Context) error {
	ttl := l.locks.ttl.Milliseconds()
	if !l.locks.plain {
		return l.run(ctx, "extend", extendScript, l.value.String(), ttl)
	}
	reply, err := l.locks.redis.Do(ctx, "GET", l.key)
	if err != nil {
		return l.explain("extend", err)
	}
	if found, _ := text(reply); found != l.value.String() {
		return l.explain("extend", ErrLost)
	}
	reply, err = l.locks.redis.Do(ctx, "PEXPIRE", l.key, ttl)
	return l.changed("extend", reply, err)
}

// run runs a script on the key.
func (l *Lock) run(ctx context.Context, verb, script string, args ...any) error {
	reply, err := l.locks.redis.Do(ctx, append([]any{"EVAL", script, 1, l.key}, args...)...)
	return l.changed(verb, reply, err)
}

// changed is ErrLost unless a reply is 1.
func (l *Lock) changed(verb string, reply any, err error) error {
	if err == nil && reply != int64(1) {
		err = ErrLost
	}
	return l.explain(verb, err)
}

func (l *Lock) explain(verb string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", verb, l.key, err)
}
