package outboxwatch

import (
	"encoding/json"
	"time"
)

// The schema_version that django-celery-outbox writes and sends. Its relay leaves other rows where they are.
const (
	MinSchemaVersion = 1
	MaxSchemaVersion = 1
)

// State is where a row is on its way to the broker. It follows from the row and the clock of its database.
type State string

// The states.
const (
	Pending     State = "pending"      // no relay has taken it yet
	InFlight    State = "in_flight"    // a relay has taken it and not recorded the outcome
	Stale       State = "stale"        // taken longer ago than the stale timeout: a relay will take it again
	Deferred    State = "deferred"     // sending failed; it is tried again at RetryAfter
	Due         State = "due"          // RetryAfter has passed
	OtherSchema State = "other_schema" // its schema_version is not supported: no relay takes it
)

// States returns all states in the order of a row's life.
func States() [6]State { return [6]State{Pending, InFlight, Stale, Deferred, Due, OtherSchema} }

// Ready reports whether a relay may take a row in this state now.
func (s State) Ready() bool { return s == Pending || s == Stale || s == Due }

// Row is a message in an outbox. It is deleted when it has been sent.
type Row struct {
	ID       int64
	TaskID   string
	TaskName string
	State    State

	CreatedAt     time.Time
	UpdatedAt     time.Time // when a relay last took it or recorded a failure; zero if none has
	RetryAfter    time.Time // zero if sending has not failed
	Retries       int       // failed attempts
	SchemaVersion int

	Payload
}

// DeadLetter is a message that a relay has given up.
type DeadLetter struct {
	ID       int64
	TaskID   string
	TaskName string

	CreatedAt     time.Time // of the row in the outbox
	DeadAt        time.Time
	Retries       int
	Reason        string // failure_reason, at most 1 KiB; empty if there is none
	SchemaVersion int

	Payload
}

// Payload is what a message holds, as people may see it: redacted columns stand for the originals, arguments of nested
// signatures are left out, and secrets are masked. Nil is not read, or longer than MaxPayload.
type Payload struct {
	Args, Kwargs, Options             json.RawMessage
	RedactedArgs, RedactedKwargs      bool // the application has redacted them
	ArgsSize, KwargsSize, OptionsSize int  // bytes
}

// MaxPayload is the longest column of a payload that is read, in bytes.
const MaxPayload = 16 << 10

// MaxPage is how many rows a page holds at most.
const MaxPage = 500

// Window is how many entries of an index one page looks through for rows of a name.
const Window = 10_000

// RowRequest asks for a page of an outbox.
type RowRequest struct {
	State State  // empty for all
	Name  string // of the task; a * at its end stands for any text; empty for all
	// After is where the page starts, RowPage.Next of the page before; empty for the first one.
	After   string
	Limit   int  // 1 to MaxPage
	Payload bool // read it
}

// RowPage is a part of an outbox: rows of all or other_schema by id, pending ones too; in_flight and stale ones by
// UpdatedAt; deferred and due ones by RetryAfter. The oldest come first.
type RowPage struct {
	Rows []Row
	Next string // where the next page starts, empty at the end
	// Searched is how many rows were looked through if the page ended before it was full; there may be more.
	Searched int
}

// DeadLetterRequest asks for a page of dead letters.
type DeadLetterRequest struct {
	IDs     []int64 // at most MaxPage; nil for all
	Name    string  // as in RowRequest
	After   string  // DeadLetterPage.Next of the page before
	Limit   int     // 1 to MaxPage
	Payload bool
}

// DeadLetterPage is a part of the dead letters.
type DeadLetterPage struct {
	DeadLetters []DeadLetter
	Next        string
	Searched    int
}

// StateOf returns the state of a row at a moment of its database's clock. Its conditions are those by which the relay of
// django-celery-outbox selects rows: it takes those whose state is Ready.
func StateOf(r Row, now time.Time, staleTimeout time.Duration) State {
	switch {
	case r.SchemaVersion < MinSchemaVersion || r.SchemaVersion > MaxSchemaVersion:
		return OtherSchema
	case r.UpdatedAt.IsZero():
		return Pending
	case !r.RetryAfter.IsZero() && r.RetryAfter.After(now):
		return Deferred
	case !r.RetryAfter.IsZero():
		return Due
	case r.UpdatedAt.After(now.Add(-staleTimeout)):
		return InFlight
	default:
		return Stale
	}
}
