package state

import (
	"cmp"

	"github.com/umbelhq/umbel/clock"
)

// State is a task state by Celery's upper-case name. Custom states are upper-cased subjects.
type State string

// Celery's built-in states.
const (
	Pending  State = "PENDING"
	Received State = "RECEIVED"
	Started  State = "STARTED"
	Success  State = "SUCCESS"
	Failure  State = "FAILURE"
	Retry    State = "RETRY"
	Revoked  State = "REVOKED"
	Rejected State = "REJECTED"
)

// States lists the built-in states in the order in which a task passes through them.
func States() []State {
	return []State{Pending, Received, Started, Retry, Success, Failure, Revoked, Rejected}
}

// Final reports whether a task in this state is finished: it will not change by itself.
func (s State) Final() bool {
	return s == Success || s == Failure || s == Revoked || s == Rejected
}

// Task is a copy of what is known of one task. Pointers are nil and times are 0 where nothing is
// known. Times are µs since 1970 UTC as the sender's wall clock had them.
type Task struct {
	ID        string
	Name      *string
	State     State
	Args      *string // Python repr as sent
	Kwargs    *string // Python repr as sent
	Result    *string // Python repr as sent
	Exception *string
	Traceback *string

	Worker     *string // node name of the newest execution
	Client     *string // node name of the publisher
	Queue      *string
	Exchange   *string
	RoutingKey *string
	Retries    *int64
	ETA        *string // ISO 8601 as sent
	Expires    *string // ISO 8601 as sent

	Revocation *Revocation // why it was revoked, if it was

	RootID   *string
	ParentID *string
	Children []string // ids, by stamp

	SentAt int64
	Times
	UpdatedAt int64 // newest timestamp of its events

	WaitedSince    int64    // when this attempt was sent, or received where its task-sent was not seen; 0 if it has not started
	WaitSeconds    *float64 // started − WaitedSince, by clocks that are corrected where they are known to be off; nil if they disagree
	RuntimeSeconds *float64 // as measured by the worker
	Stamp          clock.Stamp

	Executions []Execution // oldest first; the last one is shown in the fields above

	Redelivered  bool        // an attempt was received again after it had begun
	Orphaned     bool        // the process that ran it has ended without reporting an end: a kind of Lost
	Returned     bool        // the process that received it ended without starting it: the broker delivers it again
	OrphanReason string      // how the process has ended, in words, when Orphaned or Returned
	Lost         *Conclusion // why it is not expected to end, nil if it is or has; also of orphaned ones
	Dismissed    *Conclusion // who dismissed it, nil if not dismissed; never beside Lost
	Truncated    bool        // some text was cut or dropped to keep memory bounded

	Sends []Sent // task-sent events of attempts that were sent more than once, by time

	// Known to stores only, which set them when a query asks for duplicates: they depend on other tasks and on rules.
	CallID     CallID
	Duplicates Duplicates // Overlapping and Rerun
}

// Execution is one attempt at a task on one worker process.
type Execution struct {
	Attempt   int64 // retries when it was received, 0 for the first
	Worker    string
	PID       int64 // 0 if unknown
	State     State
	Name      *string // that it was received under
	Inferred  bool    // no task-received was seen for it
	Replaced  bool    // it ended by publishing another task under its id
	Result    *string
	Exception *string
	Traceback *string

	Revocation *Revocation // why it was revoked, if it was

	Times
	RuntimeSeconds *float64 // as measured by the worker
}

// Times are when an execution came to each of its states, µs since 1970 UTC by the worker's
// wall clock, 0 where it did not.
type Times struct {
	ReceivedAt, StartedAt, SucceededAt, FailedAt int64
	RetriedAt, RevokedAt, RejectedAt             int64
}

// at is the field that a kind of event sets, nil for a custom one.
func (t *Times) at(k Kind) *int64 {
	switch k {
	case TaskReceived:
		return &t.ReceivedAt
	case TaskStarted:
		return &t.StartedAt
	case TaskSucceeded:
		return &t.SucceededAt
	case TaskFailed:
		return &t.FailedAt
	case TaskRetried:
		return &t.RetriedAt
	case TaskRevoked:
		return &t.RevokedAt
	case TaskRejected:
		return &t.RejectedAt
	default:
		return nil
	}
}

// TaskEvent is one stored event of a task, for its timeline.
type TaskEvent struct {
	Type     string // Celery's name, task-received
	Hostname string
	PID      int64
	Clock    int64 // as sent, 0 if none
	Stamp    clock.Stamp

	Kind        Kind
	Name        string // of the task, empty if the event had none
	Attempt     int64  // of task-sent and task-received, 0 for the first
	OwnParent   bool   // of these: the task is its own parent, as a retry or a replacement is, or
	OtherParent bool   // it has another one
}

// Status is the liveness of a worker, from local receive times only.
type Status string

// Worker statuses.
const (
	Online   Status = "online"
	Late     Status = "late"     // no event for longer than max(3 × freq, 10 s)
	Offline  Status = "offline"  // no event for half as long again, or shut down
	Stopping Status = "stopping" // sent worker-offline, but tasks that it had started have not ended, for an hour at most
)

// Worker is a copy of what is known of one worker, by node name.
type Worker struct {
	Name            string
	PID             int64 // 0 if unknown
	Status          Status
	LastHeartbeatAt int64   // local receipt time, µs
	FreqSeconds     float64 // seconds between heartbeats, 0 if it has sent none
	Active          *int64  // tasks running, as last reported
	Processed       *int64  // tasks accepted since its start, as last reported
	Load            *[3]float64
	Software        *string // py-celery
	Version         *string
	System          *string
	Restarts        int64        // processes seen under this name, less one
	Clock           int64        // its newest repaired clock
	ClockOffset     *ClockOffset // how far its wall clock is ahead of the local one, at present; nil if unknown
	// ClockOffsetMicros is the most likely offset, µs: the middle of ClockOffset, or a little less if that is open; nil if unknown.
	ClockOffsetMicros *int64
	ClockSetAt        int64       // when its wall clock was last found to be set, by the local clock, µs; 0 if it was not
	RunningTasks      int         // unfinished tasks that events place here
	LastReport        *LastReport // nil if it has never reported; read-only
	Extra             map[string]string
}

// Query selects tasks. Empty fields match all.
type Query struct {
	States  []State
	Names   []string // exact task names
	Workers []string // exact node names
	Text    string   // substring of the id, name or any text, without regard to case
	Root    string   // exact root id

	Limit int       // 1 to 500; 0 means 50
	From  *Position // continue after this row, exclusive
	Newer bool      // walk towards newer rows from From, instead of older ones
}

// Position is a place in the list of tasks.
type Position struct {
	Stamp clock.Stamp
	Value int64  // that the list is sorted by, where it is not by Stamp
	Word  string // the same of a list in alphabetical order, in which Compare has no part
	ID    string
}

// Compare orders places in an ascending list: by Value, Stamp, ID.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Value, q.Value), p.Stamp.Compare(q.Stamp), cmp.Compare(p.ID, q.ID))
}

// Page is a consistent part of the list of tasks, newest change first.
type Page struct {
	Tasks []Task
	Older *Position // where an older page starts, nil at the end
	Newer *Position // where a newer page starts, nil at the top
	Total *int      // matches in all, nil if counting was given up
}

// Counts are totals over the tasks and workers held in memory.
type Counts struct {
	Tasks    int
	ByState  map[State]int
	ByName   map[string]int
	ByWorker map[string]int
	ByQueue  map[string]int
	Workers  map[Status]int

	Running     int // started, not ended, and not lost, on workers that are not offline: what workers call active
	Unreachable int // the same on offline workers
	Lost        int // unfinished ones that are not expected to end, with the orphaned ones
	Orphaned    int
	Returned    int
	Dismissed   int    // unfinished ones that a person has dismissed
	Evicted     uint64 // tasks dropped to stay within MaxTasks
}
