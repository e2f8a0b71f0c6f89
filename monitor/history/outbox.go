package history

import (
	"context"
	"errors"
	"time"
)

// CommandSchema is the version of Command.Payload that this program writes and sends. Rows of others are left alone.
const CommandSchema = 1

// ErrKeyReused says that an idempotency key was used before for something else.
var ErrKeyReused = errors.New("idempotency key used before for another request")

// CommandState is how far a command has come.
type CommandState string

// States of a command. The last five are final.
const (
	CommandPending   CommandState = "pending"   // waits for its turn, or to be tried again
	CommandInFlight  CommandState = "in_flight" // claimed by a relay
	CommandSent      CommandState = "sent"      // the broker has it, and workers may still answer
	CommandDone      CommandState = "done"      // the broker has it, and everybody who was to answer did, or nobody is to
	CommandSilent    CommandState = "silent"    // the broker has it, and somebody did not answer in time
	CommandDead      CommandState = "dead"      // given up: it has a dead letter
	CommandExpired   CommandState = "expired"   // not sent in time
	CommandDiscarded CommandState = "discarded" // a dead letter that somebody has removed, or a command called off
)

// Final reports whether nothing more will happen to a command by itself.
func (s CommandState) Final() bool {
	return s != CommandPending && s != CommandInFlight && s != CommandSent
}

// Command is something that Umbel is to send: a row before it is sent.
type Command struct {
	ID        int64 // rises with every command
	RequestID int64 // the ID of the first command of the same Order: all that one request has asked for
	Schema    int
	Kind      string // control, task, purge
	// Group is what commands are sent in order of ID within, one at a time. One that has to be tried again holds back
	// those behind it.
	Group   string
	Target  string // to whom, for people: celery@w1, queue mail, every worker
	Summary string // what, for people: Revoke task 3f2a… with SIGKILL
	Payload []byte // JSON, as package action writes it
	TaskID  string // of the task that it publishes or is about, empty if none or many

	State     CommandState
	Attempts  int    // failed ones that count towards the limit
	Deferrals int    // times that it was put off since the broker was away
	LastError string // without passwords
	Expected  []string
	Replies   []Reply

	CreatedAt time.Time
	DueAt     time.Time // not before
	ExpiresAt time.Time // not after; zero is never
	ClaimedAt time.Time
	SentAt    time.Time // when the broker had it, zero if it has not
	DoneAt    time.Time // when it became final
	Actor     string    // who asked for it
}

// Reply is what a worker said to a command.
type Reply struct {
	Node  string
	At    time.Time
	Text  string // what it said
	OK    bool   // it said yes
	Clock int64
}

// CommandRequest is what one request asks to be sent, all or nothing.
type CommandRequest struct {
	Commands []Command   // with neither ID nor State
	Audit    AuditRecord // Commands is filled in
	// Key is the idempotency key of the request, empty if it has none, and Print the fingerprint of what it
	// asks for.
	IdempotencyKey, Fingerprint string
}

// AuditRecord is a record of something that somebody has done. Records are never changed or removed; each holds a hash
// over itself and the one before.
type AuditRecord struct {
	ID           int64
	At           time.Time
	Actor        string // who
	RemoteAddr   string // address that the request came from
	Action       string // revoke, publish, requeue, …
	Target       string // to whom
	Detail       string // JSON: parameters, query, preflight
	Commands     int    // how many commands
	FirstCommand int64  // ID of the first, 0 if none
	Hash         string // hex of SHA-256
}

// Outcome is what became of a command that a relay has claimed.
type Outcome struct {
	ID    int64
	State CommandState // CommandPending puts it back
	// DueAt is when a command that was put back is due again.
	DueAt     time.Time
	Attempts  int // the new value
	Deferrals int // the new value
	Error     string
	Expected  []string
	SentAt    time.Time
}

// CommandFilter chooses commands for a list, newest first.
type CommandFilter struct {
	States    []CommandState // empty is any
	Kind      string
	TaskID    string
	Worker    string // that they are for or were answered by
	Actor     string
	RequestID int64
	Before    int64 // ID, 0 is from the newest
	Limit     int   // 1 to 500
}

// OutboxStats sums up an outbox.
type OutboxStats struct {
	States        map[CommandState]int
	OldestPending time.Time // when the first of this schema was created, zero if none is pending
	OtherSchema   int       // of those pending or in flight, how many are of another schema: nobody will send them
	DeadLetters   int
	TopErrors     []ErrorCount // of dead letters and of pending commands that have failed, most frequent first
}

// ErrorCount is how often an error occurred.
type ErrorCount struct {
	Error string
	N     int
}

// Claimed is what a relay is to send now.
type Claimed struct {
	Commands []Command // by group, within a group by ID
	Expired  int       // how many others have become so
}

// CommandReplies is what was heard of a sent command.
type CommandReplies struct {
	ID      int64
	Replies []Reply
	State   CommandState // the new one
}

// Outbox keeps commands on their way out, and who has asked for them.
type Outbox interface {
	// Enqueue writes the commands of an order as pending, with its audit record, in one transaction, and returns
	// them as they are. If an order with the same key was enqueued within the last day, nothing is written and that
	// one's commands are returned with replayed; the error is ErrKeyReused if its fingerprint was another. The order
	// is of the time Audit.At. What commands leave open is set: Schema to CommandSchema, CreatedAt to Audit.At, DueAt to
	// CreatedAt, Actor to Audit.Actor.
	Enqueue(ctx context.Context, o CommandRequest) (commands []Command, replayed bool, err error)
	// CommandsByKey returns the commands of the order that was enqueued with a key within the last day, false if none was.
	// The error is ErrKeyReused if its fingerprint was another.
	CommandsByKey(ctx context.Context, key, print string, now time.Time) (commands []Command, ok bool, err error)
	// Claim marks due commands as in flight and returns them: at most limit, at most each of one group, and of this
	// schema alone. It passes over groups that have any command in flight, and takes the commands of a group in order
	// up to the first that is not due. Pending commands whose time is over become expired.
	Claim(ctx context.Context, now time.Time, limit, each int) (Claimed, error)
	// RecordOutcomes records what became of claimed commands. One that is not in flight any more is left as it is.
	RecordOutcomes(ctx context.Context, now time.Time, outcomes []Outcome) error
	// AddReplies adds answers to sent commands. One that is in another state is left as it is.
	AddReplies(ctx context.Context, now time.Time, replies []CommandReplies) error
	// Reclaim puts back what was claimed before a moment and never settled, but for held, and returns how many that
	// were.
	Reclaim(ctx context.Context, before time.Time, held []int64) (int, error)
	// Command returns one command, ErrNotFound if there is none.
	Command(ctx context.Context, id int64) (Command, error)
	// Commands returns a page of commands, newest first, and the Before of the next one, 0 at the end.
	Commands(ctx context.Context, f CommandFilter) (list []Command, next int64, err error)
	// RequestStates returns how many commands of an order are in each state.
	RequestStates(ctx context.Context, order int64) (map[CommandState]int, error)
	// Requeue makes dead commands pending again, with no attempts and this time to expire; ids that are not dead are
	// passed over. It returns how many were, and writes the audit record if any was.
	Requeue(ctx context.Context, ids []int64, now, expires time.Time, a AuditRecord) (int, error)
	// Discard removes dead letters and calls pending commands off, like Requeue.
	Discard(ctx context.Context, ids []int64, now time.Time, a AuditRecord) (int, error)
	// AppendAudit writes an audit record of something that needs no command.
	AppendAudit(ctx context.Context, a AuditRecord) error
	// OutboxStats sums up.
	OutboxStats(ctx context.Context) (OutboxStats, error)
	// TasksWithCommands returns which of tasks, at most 500, have commands of a kind.
	TasksWithCommands(ctx context.Context, kind string, tasks []string) ([]string, error)
	// AuditLog returns records, newest first, and the before of the next page, 0 at the end.
	AuditLog(ctx context.Context, before int64, limit int) (list []AuditRecord, next int64, err error)
	// VerifyAudit recomputes the hashes and returns the ID of the first record that was tampered with, 0 if none was.
	VerifyAudit(ctx context.Context) (int64, error)
}
