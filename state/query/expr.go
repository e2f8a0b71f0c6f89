// Package query implements the language in which tasks are searched: it parses queries, writes them in one
// canonical form, and decides whether a task matches. Stores compile the same expressions into SQL. It does no I/O
// and reads no wall clock.
package query

import "time"

// Field is what a term looks at.
type Field uint8

// The fields of a task. Any is a term without a field: it looks at the start of the id, the name, and all
// texts. They are in groups of one Type: words, sets, texts, times, durations, numbers.
const (
	Any Field = iota + 1

	ID
	Name
	Worker
	Queue
	Client
	Exchange
	RoutingKey
	Root
	Parent
	Failure // id of a group of failures, fingerprint.ID

	State
	Is
	Dup    // how it repeats work: a Dup value, or a call, state.CallID
	Outbox // stage in an application's outbox, which a Query has only until it is resolved

	Cluster // name of one of several, which a Query has only until Within or In

	// Before and those that follow are ids of tasks to which it is causally related. A Query has these, too, only until it
	// is resolved.
	Before     // something of it may have led to something of the task
	After      // the other way
	Concurrent // neither is known
	Cone       // either is, or it is the task itself

	Args
	Kwargs
	Result
	Exception
	Traceback

	Sent
	Received
	Started
	Finished
	Updated
	ETA
	Expires

	Wait
	Run

	Retries
	Clock
)

// Type is the kind of values that a field has.
type Type uint8

// The types of fields.
const (
	Word     Type = iota + 1 // exact, with * for any characters
	Set                      // one of a few words
	Text                     // contains
	Time                     // µs since 1970 UTC
	Duration                 // µs
	Number                   // an integer
)

// Expr is a parsed query: And, Or, Not or Term. An empty And matches everything.
type Expr interface{ expr() }

// And matches where all do.
type And []Expr

// Or matches where any does. It has at least two.
type Or []Expr

// Not matches where X does not. A term on what is not known of a task does not match, so its
// negation does.
type Not struct{ X Expr }

// Term matches where the field has any of the values, of which there is at least one.
type Term struct {
	Field  Field
	Values []Value
}

func (And) expr()  {}
func (Or) expr()   {}
func (Not) expr()  {}
func (Term) expr() {}

// Value is what a term compares with. Which fields count depends on Match.
type Value struct {
	Match    Match
	Text     string // Exact, Pattern, Contains
	Min, Max Bound  // Range
}

// Match is a way of comparing.
type Match uint8

// The ways of comparing. Text is compared by case where it is Exact or a Pattern of a Word, and without
// regard to case elsewhere. A Pattern has * for any run of characters and no other magic. It is the whole of
// a Word, and any part of a Text. The Pattern * matches whatever is known.
const (
	Exact Match = iota + 1
	Pattern
	Contains
	Range
)

// Bound is an end of a range. Both ends of a range are optional: a range without any matches what is known.
// In parsed queries an end is exclusive only where the other is not set.
type Bound struct {
	Set       bool
	Exclusive bool
	Relative  bool  // N is a distance in µs from now, negative before it
	N         int64 // µs or a plain number, by the field's type
}

// At returns the bound's value as of now.
func (b Bound) At(now time.Time) int64 {
	if b.Relative {
		return now.UnixMicro() + b.N
	}
	return b.N
}

// Is values.
const (
	IsActive      = "active"      // not finished
	IsFinished    = "finished"    // SUCCESS, FAILURE, REVOKED or REJECTED
	IsRetried     = "retried"     // has been retried at least once
	IsRedelivered = "redelivered" // an attempt was received again after it had begun
	IsLost        = "lost"        // unfinished, and not expected to end
	IsOrphaned    = "orphaned"    // lost, since its process ended without reporting an end
	IsDismissed   = "dismissed"   // unfinished, and a person has said that it will not end
	IsTruncated   = "truncated"   // some text was cut
)

// Dup values.
const (
	DupAny         = "any"         // any of those below but retry
	DupRedelivery  = "redelivery"  // an attempt was received again after it had begun
	DupResend      = "resend"      // an attempt was sent more than once
	DupRetry       = "retry"       // it was retried
	DupOverlapping = "overlapping" // it ran while another task of its call did
	DupRerun       = "rerun"       // it ran after another task of its call had succeeded
	DupSkipped     = "skipped"     // a lock has skipped it
)

// Sort is the sort order of a list. The zero value is newest change first.
type Sort struct {
	Field     Field // 0, or one that is Sortable; tasks without it are left out
	Ascending bool  // tasks with equal values are sorted the same way, but of an Alphabetical field by newest change first
}
