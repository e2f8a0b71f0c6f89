package history

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/umbelhq/umbel/state"
)

// CommandSchema is the version of Command.Payload that this program writes and sends. Commands of other versions are left
// alone.
const CommandSchema = 1

// ErrKeyReused is returned when an idempotency key was used before for a different request.
var ErrKeyReused = errors.New("idempotency key used before for another request")

// CommandState is the state of a command.
type CommandState string

// States of a command. The last five are final.
const (
	CommandPending   CommandState = "pending"   // waits to be sent, or to be retried
	CommandInFlight  CommandState = "in_flight" // claimed by a relay
	CommandSent      CommandState = "sent"      // confirmed by the broker; workers may still reply
	CommandDone      CommandState = "done"      // confirmed by the broker; all expected workers have replied
	CommandNoReply   CommandState = "no_reply"  // confirmed by the broker; an expected worker has not replied in time
	CommandDead      CommandState = "dead"      // failed for good: it has a dead letter
	CommandExpired   CommandState = "expired"   // not sent in time
	CommandDiscarded CommandState = "discarded" // a dead letter that was removed, or a command canceled before it was sent
)

// CommandStates returns all states in the order in which a command may pass through them.
func CommandStates() []CommandState {
	return []CommandState{
		CommandPending, CommandInFlight, CommandSent, CommandDone, CommandNoReply, CommandDead, CommandExpired, CommandDiscarded,
	}
}

// Final reports whether the state does not change anymore unless a user changes it.
func (s CommandState) Final() bool {
	return s != CommandPending && s != CommandInFlight && s != CommandSent
}

// Command is a message that Umbel sends to the broker. It is stored before it is sent.
type Command struct {
	ID        int64 // increases with every command
	RequestID int64 // ID of the first command of the same CommandRequest
	Schema    int
	Kind      string // control, task, purge, requeue_dead_letters, purge_dead_letters
	// Group serializes commands: those of one group are sent one at a time, by ID. One that is retried delays those
	// after it.
	Group   string
	Target  string // recipient, for display: celery@w1, queue mail, every worker
	Summary string // for display: Revoke task 3f2a… with SIGKILL
	Payload []byte // JSON, written by package command
	TaskID  string // task that it publishes or is about, empty if none or several

	State     CommandState
	Attempts  int      // failed ones that count toward the limit
	Deferrals int      // times it was postponed because the broker was unavailable
	LastError string   // without passwords
	Expected  []string // nodes that should reply
	Replies   []Reply

	CreatedAt time.Time
	DueAt     time.Time // not sent before
	ExpiresAt time.Time // not sent after; zero is never
	ClaimedAt time.Time
	SentAt    time.Time // confirmed by the broker, zero if not
	DoneAt    time.Time // when its state became final
	Actor     string    // user who requested it
}

// Missing returns the nodes that should reply and have not.
func (c Command) Missing() []string {
	return slices.DeleteFunc(slices.Clone(c.Expected), func(node string) bool {
		return slices.ContainsFunc(c.Replies, func(r Reply) bool { return r.Node == node })
	})
}

// Refused returns the number of workers that did not accept the command.
func (c Command) Refused() int {
	n := 0
	for _, r := range c.Replies {
		if !r.OK {
			n++
		}
	}
	return n
}

// Reply is a worker's reply to a command.
type Reply struct {
	Node  string
	At    time.Time
	Text  string
	OK    bool // the worker accepted the command
	Clock int64
}

// CommandRequest is a set of commands that is enqueued as a whole.
type CommandRequest struct {
	Commands []Command   // with neither ID nor State
	Audit    AuditRecord // Commands is filled in
	// IdempotencyKey identifies the request when it is repeated, empty if it has none; Fingerprint tells whether the
	// repetition asks for the same.
	IdempotencyKey, Fingerprint string
}

// Outcome is the result of sending a command that a relay has claimed.
type Outcome struct {
	ID    int64
	State CommandState // CommandPending to retry it
	// DueAt is when a command is to be retried.
	DueAt     time.Time
	Attempts  int // the new value
	Deferrals int // the new value
	Error     string
	Expected  []string
	Payload   []byte // the new value, nil for the old one
	SentAt    time.Time
}

// CommandFilter selects commands for a list, newest first.
type CommandFilter struct {
	States    []CommandState // empty is any
	Kind      string
	TaskID    string
	Worker    string // that they are for or that replied
	Actor     string
	RequestID int64
	Before    int64 // ID, 0 is from the newest
	Limit     int   // 1 to 500
}

// RequestSummary is a request with what became of all its commands.
type RequestSummary struct {
	First   Command // of its commands
	Mixed   bool    // its commands have different summaries
	Spread  bool    // they have different targets
	States  map[CommandState]int
	Refused int                 // commands that a worker did not accept
	Tasks   map[state.State]int // of the tasks that it published, as far as events show them
}

// Commands returns the number of commands.
func (r RequestSummary) Commands() int {
	n := 0
	for _, count := range r.States {
		n += count
	}
	return n
}

// OutboxStats summarizes an outbox.
type OutboxStats struct {
	States        map[CommandState]int
	OldestPending time.Time // creation of the first pending command of this schema, zero if none is
	OtherSchema   int       // pending or in flight, but of another schema: not sent by this version
	DeadLetters   int
	TopErrors     []ErrorCount // of dead letters and of failed pending commands, most frequent first
}

// ErrorCount is how often an error occurred.
type ErrorCount struct {
	Error string
	N     int
}

// Claimed is the result of Claim.
type Claimed struct {
	Commands []Command // by group, within a group by ID
	Expired  int       // number of commands that have expired
}

// CommandReplies adds replies to a sent command.
type CommandReplies struct {
	ID      int64
	Replies []Reply
	State   CommandState // new state
}

// CommandReader reads commands and the audit log.
type CommandReader interface {
	// Command returns one command, ErrNotFound if there is none.
	Command(ctx context.Context, id int64) (Command, error)
	// Commands returns a page of commands, newest first, and the Before of the next one, 0 at the end.
	Commands(ctx context.Context, f CommandFilter) (list []Command, next int64, err error)
	// Requests returns a page of the requests with a command that matches, newest first, and the Before of the next page,
	// 0 at the end.
	Requests(ctx context.Context, f CommandFilter) (list []RequestSummary, next int64, err error)
	// Request returns one request, ErrNotFound if none of its commands is retained.
	Request(ctx context.Context, id int64) (RequestSummary, error)
	// OutboxStats summarizes the outbox.
	OutboxStats(ctx context.Context) (OutboxStats, error)
	// AuditLog returns records, newest first, and the Before of the next page, 0 at the end.
	AuditLog(ctx context.Context, f AuditFilter) (list []AuditRecord, next int64, err error)
	// VerifyAudit recomputes the hashes and returns the ID of the first record that was changed or is missing, 0 if none.
	VerifyAudit(ctx context.Context) (int64, error)
}

// Relays is what relays do with commands. There is one in each process that sends; several processes may share an outbox. A
// relay has a name that no other has, or had. Once it is gone, the name is not used again.
type Relays interface {
	// BeginRelay lets a relay claim commands for as long as is returned, from before the call; zero is until the process ends.
	BeginRelay(ctx context.Context, relay string) (time.Duration, error)
	// RenewRelay lets it go on for as long from now, ErrNotFound if it is gone.
	RenewRelay(ctx context.Context, relay string) error
	// EndRelay says that it is gone.
	EndRelay(ctx context.Context, relay string) error
	// Claim marks due commands of this schema as in flight for a relay and returns them: at most limit, and at most perGroup of
	// one group. It skips groups that have a command in flight, and takes the commands of a group by ID up to the first
	// that is not due. Pending commands past ExpiresAt become expired.
	Claim(ctx context.Context, relay string, now time.Time, limit, perGroup int) (Claimed, error)
	// RecordOutcomes updates commands that a relay has claimed. It ignores those that are not in flight for it anymore.
	RecordOutcomes(ctx context.Context, relay string, now time.Time, outcomes []Outcome) error
	// AddReplies adds replies to sent commands. It ignores commands in another state.
	AddReplies(ctx context.Context, now time.Time, replies []CommandReplies) error
	// Reclaim makes commands pending again that relays have claimed which are gone, and marks as unanswered those that wait
	// for replies to such a relay. Of the commands of the relay itself, it makes those pending that were claimed before a time,
	// except those with the ids in except.
	Reclaim(ctx context.Context, relay string, now, before time.Time, except []int64) (Reclaimed, error)
}

// Reclaimed is the result of Reclaim, in numbers of commands.
type Reclaimed struct {
	Pending    int // again
	Unanswered int
}

// Outbox stores commands until they are sent and after, and the audit log.
type Outbox interface {
	CommandReader

	// Enqueue writes the commands of r as pending, with its audit record, in one transaction, and returns them. If a
	// request with the same idempotency key was enqueued within the last day, nothing is written and the commands of
	// that one are returned with replayed; the error is ErrKeyReused if its fingerprint differs. Empty fields of
	// commands are set: Schema to CommandSchema, CreatedAt to Audit.At, DueAt to CreatedAt, Actor to Audit.Actor.
	Enqueue(ctx context.Context, r CommandRequest) (commands []Command, replayed bool, err error)
	// CommandsByKey returns the commands of the request that was enqueued with an idempotency key within the last day,
	// false if none was. The error is ErrKeyReused if its fingerprint differs.
	CommandsByKey(ctx context.Context, key, fingerprint string, now time.Time) (commands []Command, ok bool, err error)
	Relays

	// Requeue makes dead commands pending again, with no attempts and a new expiry, and returns how many. It ignores ids
	// of commands that are not dead. It writes the audit record unless there were none.
	Requeue(ctx context.Context, ids []int64, now, expires time.Time, a AuditRecord) (int, error)
	// Discard removes dead letters and cancels pending commands; else it is like Requeue.
	Discard(ctx context.Context, ids []int64, now time.Time, a AuditRecord) (int, error)
	// AppendAudit writes an audit record of what needs no command.
	AppendAudit(ctx context.Context, a AuditRecord) error
	// TasksWithCommands returns which of at most 500 tasks have commands of a kind.
	TasksWithCommands(ctx context.Context, kind string, tasks []string) ([]string, error)
}
