package locks

import (
	"time"

	"github.com/umbelhq/umbel/state"
)

// Lock is one lock and what is known of it. Zero times are unknown.
type Lock struct {
	Key         string // as in Redis or, if a part of it was redacted, with a mark that tells it from others, which Find understands
	Kind        Kind
	Name        string // of the task, empty if unknown
	Fingerprint string // of the call, empty if the key holds none
	State       State
	Problem     string // why the value tells nothing, as a sentence; empty if it does
	Value       string // as stored, redacted, at most MaxValue bytes

	FirstSeenAt time.Time
	AcquiredAt  time.Time // when it was taken, or completed
	// AcquiredFrom is how AcquiredAt is known: AcquiredTask, AcquiredTTL; empty if it is not.
	AcquiredFrom string
	ExpiresAt    time.Time // zero if it does not expire
	Persistent   bool      // it does not expire
	Holder       *Holder   // nil if unknown
	RunP99       time.Duration
	Marks        []Mark // worst first

	// Gone is when the lock was found to be gone while its task still ran, zero if it is there. Another run may hold the key
	// again.
	Gone time.Time
	// Version names what was seen: its value, expiry and holder. A release asks for it.
	Version string

	stored Entry // as in Redis
}

// Sources of AcquiredAt.
const (
	AcquiredTask = "task" // the times of its holder
	AcquiredTTL  = "ttl"  // the time that remains, of the usual one
)

// Holder is the task that holds a lock.
type Holder struct {
	TaskID string
	// Certain says that the lock names the task; else it is the newest task with the same call.
	Certain bool
	Status  HolderStatus
	State   state.State // of the task, empty if no event of it is retained
	Worker  string      // empty if unknown
	Why     string      // why it does not run any more, as a sentence without its full stop; empty if it may
	// StartedAt, SentAt and EndedAt are by the clocks of workers and clients.
	SentAt, StartedAt, EndedAt time.Time
	// Others are further tasks that run with the same call.
	Others []string
}

// HolderStatus says whether the task of a lock still runs.
type HolderStatus string

// Statuses of a holder.
const (
	Running       HolderStatus = "running"
	Waiting       HolderStatus = "waiting" // sent, not started
	Ended         HolderStatus = "ended"
	Lost          HolderStatus = "lost" // its worker died, or the task is lost
	UnknownHolder HolderStatus = "unknown"
)

// Active reports whether the task runs or will.
func (s HolderStatus) Active() bool { return s == Running || s == Waiting }

// Mark is something wrong with a lock.
type Mark struct {
	Kind MarkKind
	Text string // a sentence
}

// MarkKind is what is wrong.
type MarkKind string

// Marks, worst first.
const (
	SecondRun MarkKind = "second_run" // the lock was gone while its task ran, and another run has started
	Expired   MarkKind = "expired"    // the lock is gone while its task runs: another run can start
	Stuck     MarkKind = "stuck"      // its task has ended, or its worker died
	TooShort  MarkKind = "too_short"  // its TTL is below twice the p99 run time of the task
)

// MarkKinds returns all marks, worst first.
func MarkKinds() []MarkKind { return []MarkKind{SecondRun, Expired, Stuck, TooShort} }

// Has reports whether the lock has a mark.
func (l *Lock) Has(kind MarkKind) bool {
	for _, m := range l.Marks {
		if m.Kind == kind {
			return true
		}
	}
	return false
}

// Snapshot is all locks as they were last read.
type Snapshot struct {
	At     time.Time // zero if they were never read
	Source string
	Error  string // why the last read failed, as a sentence; empty if it did not
	Locks  []Lock // marked ones first, then those in progress; not to be changed
	More   bool   // there are more than MaxLocks
	// Scanning says that not all keys have been examined yet.
	Scanning bool
}
