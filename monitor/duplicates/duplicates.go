// Package duplicates recognises tasks that repeat work: it identifies their calls, and judges how two runs of one call
// came about, with the evidence. It reads no store and decides nothing about tasks.
package duplicates

import (
	"github.com/umbelhq/umbel/state"
)

// Verdict is how a run came to repeat another.
type Verdict string

// Verdicts, those on two runs of one task first.
const (
	Redelivery  Verdict = "redelivery"  // one task: the broker delivered an attempt again after it had begun
	Resend      Verdict = "resend"      // one task: an attempt was sent twice
	Retry       Verdict = "retry"       // one task: a later attempt, as Celery was told
	Overlapping Verdict = "overlapping" // two tasks ran at the same time
	Rerun       Verdict = "rerun"       // the second ran after the first had succeeded
	Skipped     Verdict = "skipped"     // a lock has skipped the second
)

// Verdicts returns all verdicts in their order.
func Verdicts() []Verdict {
	return []Verdict{Redelivery, Resend, Retry, Overlapping, Rerun, Skipped}
}

// Mark returns the bit of the verdict in a set of state, 0 if there is no such verdict.
func (v Verdict) Mark() state.Duplicates {
	for i, known := range Verdicts() {
		if v == known {
			return 1 << i
		}
	}
	return 0
}

// Run is one execution of a task, or one that was sent. Times are µs since 1970 UTC by the clock of the host that
// reported them, 0 if unknown.
type Run struct {
	TaskID  string
	Attempt int64 // 0 for the first
	Worker  string
	PID     int64
	State   state.State
	// SentAt is set where the verdict is Resend, ReceivedAt where it was received.
	SentAt, ReceivedAt, StartedAt, EndedAt int64
	// Client is the sender, where the verdict is Resend.
	Client string
}

// Pair is two runs of one call, the earlier one first, and how the second came about.
type Pair struct {
	Verdict       Verdict
	Proved        bool // else possible: clocks may be off, or another message may explain it
	First, Second Run
	Evidence      []Fact
	// WastedSeconds is how long the second ran although the first did the work; of runs that overlap, how long they did.
	WastedSeconds float64
}

// Fact is a piece of evidence.
type Fact struct {
	Kind FactKind
	Text string // a sentence for people
	At   int64  // when, µs since 1970 UTC, 0 if it has no time
	Task string // id of the task that it is about
}

// FactKind says what a fact is about, for programs.
type FactKind string

// Kinds of facts.
const (
	FactSent        FactKind = "sent"
	FactReceived    FactKind = "received"
	FactStarted     FactKind = "started"
	FactEnded       FactKind = "ended"
	FactNoEnd       FactKind = "no_end"      // the end of the first run was never reported
	FactRedelivered FactKind = "redelivered" // an attempt was received again after it had begun
	FactWorkerLost  FactKind = "worker_lost" // the process of the first run ended between the two
	FactAcksLate    FactKind = "acks_late"   // the task is acknowledged after it has run
	FactOverlap     FactKind = "overlap"     // for how long the runs overlapped
	FactClocks      FactKind = "clocks"      // how well the clocks of the two workers agree
	FactSkipReason  FactKind = "skip_reason" // what the result of the skipped task says
	FactAttempt     FactKind = "attempt"     // which attempt a run is
)

// Options is what else is known. The zero value knows nothing.
type Options struct {
	// Offset returns how far the clock of a worker is ahead of the local one, µs; nil, or false, if unknown.
	Offset func(worker string) (micros int64, ok bool)
	// AcksLate reports whether a worker acknowledges a task after it has run; nil, or false for ok, if unknown.
	AcksLate func(worker, task string) (late, ok bool)
	// Now is the local time, µs since 1970 UTC: runs that have not ended last until now.
	Now int64
}
